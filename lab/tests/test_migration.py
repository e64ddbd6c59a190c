"""MIGRATION.md: what it tells users of version 1.0 to write is executed, and prints what the page shows."""

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
PYTHON = re.findall(r"In 2\.0:\n\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"In 2\.0:\n\n```sh\nclickgym (.*?)\n```", PAGE)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with the module of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(trust, "_NAMED", set())
    code = re.search(r"```python\n(# shop\.py\n.*?)```", PAGE, flags=re.DOTALL)
    assert code
    (tmp_path / "shop.py").write_text(code[1], encoding="utf-8")
    yield tmp_path
    sys.modules.pop("shop", None)


def test_what_is_to_be_written_is_with_a_piece_of_code_before_and_after():
    assert PAGE.count("In 1.0:\n\n```") == PAGE.count("In 2.0:\n\n```") == len(PYTHON) + len(COMMANDS)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("code", "shown"), PYTHON, ids=range(len(PYTHON)))
def test_the_code_after_runs_without_warnings_and_prints_what_the_page_shows(code, shown, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        exec(code, {})
    assert capsys.readouterr().out == shown


def test_the_imports_before_are_gone():
    (code,) = re.findall(r"In 1\.0:\n\n```python\n(from .*?)```", PAGE.partition("## Import paths")[2], flags=re.DOTALL)[:1]
    lines = code.splitlines()
    assert len(lines) == 2
    for line in lines:
        with pytest.raises(ModuleNotFoundError):
            exec(line, {})


def test_the_new_import_paths_exist():
    rows = re.findall(r"^\| `clickgym.*? \| (.*) \|$", PAGE, flags=re.MULTILINE)
    paths = [path for row in rows for path in re.findall(r"`(clickgym\.[\w.]+)`", row)]
    assert len(rows) == 10
    assert all(resolve_name(path) for path in paths)


@pytest.mark.usefixtures("undrawn")
def test_an_experiment_that_names_own_code_needs_trust(shop, printed, refused):
    (command,) = (words for words in COMMANDS if words.startswith("run"))
    text = 'envs = ["PBMRank-v0"]\nagents = ["shop:ShopTS"]\nhorizon = 20\nruns = 1\n'
    (shop / "experiment.toml").write_text(text, encoding="utf-8")
    words = [*shlex.split(command), "--jobs", "1"]
    assert "--trust" in refused([word for word in words if word != "--trust"])
    assert "shop:ShopTS" in printed(words)
