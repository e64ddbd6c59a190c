"""The notebooks of examples/: they run, at a small size, and hold no outputs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SIZES = {"SESSIONS": "3000", "HORIZON": "300", "RUNS": "2"}

by_notebook = pytest.mark.parametrize("file", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])


def small(source):
    """A cell with the sizes of a test in place of those that it sets."""
    names = re.match(r"(?:.*\n)*?([A-Z]+(?:, [A-Z]+)*) = [\d_, ]+", source)
    if names is None:
        return source
    values = ", ".join(SIZES[name] for name in names[1].split(", "))
    return re.sub(rf"^{names[1]} = [\d_, ]*\d", f"{names[1]} = {values}", source, flags=re.MULTILINE)


def cells_of(file):
    return json.loads(file.read_text(encoding="utf-8"))["cells"]


def test_there_are_four():
    assert [file.stem for file in NOTEBOOKS] == [
        "01_first_comparison", "02_own_agent_and_click_model", "03_from_a_log_to_a_decision", "04_service",
    ]  # fmt: skip


@pytest.fixture
def beside(file, monkeypatch):
    """What stands beside a notebook can be imported, and what it needs is installed."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    if file.stem == "04_service":
        for library in ("starlette", "uvicorn"):
            pytest.importorskip(library, reason='needs pip install "clickgym[service]"')


@by_notebook
def test_outputs_are_stripped(file):
    for cell in cells_of(file):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not cell["metadata"]


@by_notebook
def test_the_code_runs_in_plain_python(file, beside, tmp_path):
    code = [small("".join(cell["source"])) for cell in cells_of(file) if cell["cell_type"] == "code"]
    assert any("= 300, 2" in cell or "= 3000, 300, 2" in cell for cell in code)
    (tmp_path / "script.py").write_text("\n\n".join(code), encoding="utf-8")
    words = [sys.executable, "script.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@by_notebook
def test_it_runs_as_a_notebook_and_shows_tables_and_figures(file, beside, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason='needs pip install "clickgym[notebooks]"')
    nbformat = pytest.importorskip("nbformat", reason='needs pip install "clickgym[notebooks]"')
    pytest.importorskip("ipykernel", reason='needs pip install "clickgym[notebooks]"')
    book = nbformat.read(file, as_version=4)
    for cell in book.cells:
        cell["source"] = small(cell["source"])
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    shown = {kind for output in outputs for kind in output.get("data", ())}
    assert {"text/html", "image/png"} <= shown
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("sessions" in output.get("data", {}).get("text/plain", "") for output in outputs)  # the bar of a sweep
