"""MIGRATION.md: what it tells users of earlier versions to write is executed, and prints what the page shows."""

import re
import shlex
import sys
import warnings
from pathlib import Path
from pkgutil import resolve_name

import pytest

from clickgym.core import trust

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "MIGRATION.md").read_text(encoding="utf-8")
PARTS = dict(zip(("2.0", "3.0"), PAGE.split("\n# From version 2.0 to 3.0\n"), strict=True))
"""By the version to which a part of the page leads."""
PYTHON = [
    code
    for version, part in PARTS.items()
    for code in re.findall(rf"In {version}:\n\n```python\n(.*?)```\n\n```text\n(.*?)```", part, flags=re.DOTALL)
]
COMMANDS = {version: re.findall(rf"In {version}:\n\n```sh\nclickgym (.*?)\n```", part) for version, part in PARTS.items()}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with the module of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr(trust, "_NAMED", set())
    code = re.search(r"```python\n(# shop\.py\n.*?)```", PAGE, flags=re.DOTALL)
    assert code
    (tmp_path / "shop.py").write_text(code[1], encoding="utf-8")
    yield tmp_path
    sys.modules.pop("shop", None)


def test_what_is_to_be_written_is_with_a_piece_of_code_before_and_after():
    counts = [
        PARTS[after].count(f"In {version}:\n\n```")
        for before, after in (("1.0", "2.0"), ("2.0", "3.0"))
        for version in (before, after)
    ]
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]
    assert counts[1] + counts[3] == len(PYTHON) + sum(map(len, COMMANDS.values()))


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("code", "shown"), PYTHON, ids=range(len(PYTHON)))
def test_the_code_after_runs_without_warnings_and_prints_what_the_page_shows(code, shown, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        exec(code, {})
    assert capsys.readouterr().out == shown


def test_the_imports_before_are_gone():
    (code,) = re.findall(r"In 1\.0:\n\n```python\n(from .*?)```", PAGE.partition("## Import paths")[2], flags=re.DOTALL)[:1]
    lines = code.splitlines() + re.findall(r"In 2\.0:\n\n```python\n(from .*?)\n```", PARTS["3.0"])
    assert len(lines) == 5
    for line in lines:
        with pytest.raises(ImportError):
            exec(line, {})


def test_the_new_import_paths_exist():
    rows = re.findall(r"^\| `clickgym.*? \| (.*) \|$", PAGE, flags=re.MULTILINE)
    paths = [path for row in rows for path in re.findall(r"`(clickgym\.[\w.]+)`", row)]
    assert len(rows) == 10
    assert all(resolve_name(path) for path in paths)


@pytest.mark.usefixtures("undrawn")
def test_an_experiment_that_names_own_code_needs_trust(shop, printed, refused):
    (command,) = (words for words in COMMANDS["2.0"] if words.startswith("run"))
    text = 'envs = ["PBMRank-v0"]\nagents = ["shop:ShopTS"]\nhorizon = 20\nruns = 1\n'
    (shop / "experiment.toml").write_text(text, encoding="utf-8")
    words = [*shlex.split(command), "--jobs", "1"]
    assert "--trust" in refused([word for word in words if word != "--trust"])
    assert "shop:ShopTS" in printed(words)


def test_commands_of_version_2_are_refused_and_their_successors_exist(printed, refused):
    before = re.findall(r"In 2\.0:\n\n```sh\nclickgym (.*?)\n```", PARTS["3.0"])
    assert ["is retired" in refused(shlex.split(words)) for words in before] == [True, True]
    for words in COMMANDS["3.0"]:
        command, *rest = shlex.split(words)
        text = printed([command, "--help"])
        assert not [word for word in rest if word.startswith("--") and word not in text]
