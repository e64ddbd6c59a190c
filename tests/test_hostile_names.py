"""Names of queries, items and instances that a terminal obeys, that turn text around, or that a
spreadsheet computes.
"""

import re
import shlex
from xml.etree import ElementTree

import pytest
from rich.text import Text

from clickgym.command_line import main, one_line_warnings
from clickgym.core.formats import HIDDEN, visible
from clickgym.envs import Instance, PositionBasedModel
from clickgym.runner.console import errors
from clickgym.runner.terminal import Column, print_table, say

ESCAPE, CONTROL, TURN, LINE = "\x1b]0;owned\x07", "\x9b31m", "\u202egnp.exe", "\u2028next"
NAME = f"=HYPERLINK({ESCAPE}{CONTROL}{TURN}{LINE}\u2066)"
EVERY = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xD800,
    0xDFFF,
]


def obeyed(text):
    """What a terminal would obey, beside the ends of lines."""
    return HIDDEN.findall(text.replace("\n", ""))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an instance of such a name."""
    monkeypatch.chdir(tmp_path)
    model = PositionBasedModel([0.6, 0.3, 0.1], [0.9, 0.5])
    Instance(NAME, {"PBM": model}, 2, description=NAME, origin=NAME).save("it.json")
    return tmp_path


def test_characters():
    for code in EVERY:
        assert HIDDEN.search(chr(code)), hex(code)
        assert visible(chr(code)).startswith("\\")
    assert visible("naïve 日本 😀 a\u00a0b") == "naïve 日本 😀 a\u00a0b"


RUN = "run PBMRank-v0 --instance it.json --agents TopRank Random --horizon 50 --runs 2"
RUN = [*shlex.split(RUN), "--jobs", "1", "--out", "out"]


@pytest.mark.usefixtures("only_svg")
def test_output_of_commands(folder, capsys):
    """Nothing of it is obeyed by a terminal, in no file either that people read."""
    for words in (["show", "it.json"], RUN, ["report", "out", "--html"]):
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert obeyed(out + err) == []
    for file in folder.rglob("*"):
        if file.suffix in (".csv", ".svg"):
            assert obeyed(file.read_text(encoding="utf-8").replace("\t", "")) == [], file
        if file.suffix == ".svg":
            ElementTree.parse(file)


@pytest.mark.parametrize(
    "words",
    [
        ["show", NAME],
        ["report", NAME],
        ["run", "PBMRank-v0", "--agents", f"Top{NAME}", "--horizon", "10", "--out", "out"],
        ["run", NAME, "--agents", "TopRank", "--horizon", "10", "--out", "out"],
        [NAME],
    ],
)
def test_errors_of_commands(words, folder, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert obeyed(err) == []


def test_tables_sentences_and_warnings(capsys):
    with one_line_warnings():
        import warnings

        warnings.warn(NAME, stacklevel=1)
    say(errors(), NAME)
    print_table(
        errors(),
        [Column("name"), Column("styled")],
        [(f"two\n{NAME}", Text(f"one\ntwo{ESCAPE}", "bold"))],
        title=NAME,
    )
    err = capsys.readouterr().err
    assert obeyed(err) == []
    assert err.count("\\u202e") == 4
    assert re.search(r"two\\n=HYPER.* one *\n.*two\\x1b", err), (
        "of names no line ends, of the package's own words they stay"
    )
