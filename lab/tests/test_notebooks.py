"""The notebooks of examples/: they run, at a small size, and hold no outputs; and those of its
course teach what they say.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SIZES = {"SESSIONS": "3000", "HORIZON": "300", "RUNS": "2"}

COURSE = sorted((FOLDER / "course").glob("*.ipynb"))

by_notebook = pytest.mark.parametrize("file", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])
by_lesson = pytest.mark.parametrize("file", COURSE, ids=[file.stem for file in COURSE])


def small(source):
    """A cell with the sizes of a test in place of those that it sets."""
    names = re.match(r"(?:.*\n)*?([A-Z]+(?:, [A-Z]+)*) = [\d_, ]+", source)
    if names is None:
        return source
    values = ", ".join(SIZES[name] for name in names[1].split(", "))
    return re.sub(
        rf"^{names[1]} = [\d_, ]*\d", f"{names[1]} = {values}", source, flags=re.MULTILINE
    )


def cells_of(file):
    return json.loads(file.read_text(encoding="utf-8"))["cells"]


@pytest.fixture
def beside(file, monkeypatch):
    """What stands beside a notebook can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))


@by_notebook
def test_notebook_has_no_outputs(file):
    for cell in cells_of(file):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not cell["metadata"]


@by_notebook
def test_notebook_runs_in_plain_python(file, beside, tmp_path):
    code = [
        small("".join(cell["source"])) for cell in cells_of(file) if cell["cell_type"] == "code"
    ]
    assert any("= 300, 2" in cell or "= 3000, 300, 2" in cell for cell in code)
    (tmp_path / "script.py").write_text("\n\n".join(code), encoding="utf-8")
    words = [sys.executable, "script.py"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@by_notebook
def test_notebook_shows_tables_and_figures(file, beside, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason='needs pip install "clickgym[notebooks]"')
    nbformat = pytest.importorskip("nbformat", reason='needs pip install "clickgym[notebooks]"')
    pytest.importorskip("ipykernel", reason='needs pip install "clickgym[notebooks]"')
    book = nbformat.read(file, as_version=4)
    for cell in book.cells:
        cell["source"] = small(cell["source"])
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    shown = {kind for output in outputs for kind in output.get("data", ())}
    assert {"text/html", "image/png"} <= shown
    assert not [output for output in outputs if output.get("name") == "stderr"]
    # the bar of a sweep
    assert any("sessions" in output.get("data", {}).get("text/plain", "") for output in outputs)


# --------------------------------------------------------------------------------------- the course

FOLDED = {"jupyter": {"source_hidden": True}}
METADATA = {
    "": {},
    "exercise": {"tags": ["exercise"]},
    "check": {**FOLDED, "tags": ["check", "hide-input"]},
    "solution": {**FOLDED, "tags": ["solution", "hide-cell"]},
}
"""By the role of a cell: what the website and Jupyter fold away."""


def role(cell):
    return next(iter(cell["metadata"].get("tags", [])), "")


def text_of(file):
    return "\n\n".join(
        "".join(cell["source"]) for cell in cells_of(file) if cell["cell_type"] == "markdown"
    )


@by_lesson
def test_lesson_is_stored_without_outputs(file):
    """And folds checks and solutions; its first cell says what it teaches and needs."""
    for cell in cells_of(file):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert cell["metadata"] == METADATA[role(cell)]
    first = "".join(cells_of(file)[0]["source"])
    assert first.startswith(f"# {file.stem[0]}. ")
    for words in ("**At the end you can**", "**You need**", "**Time:** about"):
        assert words in first


@by_lesson
def test_exercises_have_checks_and_solutions(file):
    cells = cells_of(file)
    order = [role(cell) for cell in cells if role(cell)]
    n = len(order) // 3
    assert 1 <= n <= 5
    assert order == ["exercise", "check", "solution"] * n
    assert re.findall(r"^### Exercise (\d)$", text_of(file), flags=re.MULTILINE) == [
        str(i + 1) for i in range(n)
    ]
    for kind in ("check", "solution"):
        for i, cell in enumerate((cell for cell in cells if role(cell) == kind), 1):
            source = "".join(cell["source"])
            assert f"check_{i}(" in source
            assert kind == "check" or source.startswith(f"# Solution of exercise {i}\n")


@by_lesson
def test_lesson_imports_public_packages(file):
    code = "\n".join(
        "".join(cell["source"]) for cell in cells_of(file) if cell["cell_type"] == "code"
    )
    modules = {
        first or second
        for first, second in re.findall(
            r"^(?:from ([\w.]+) import|import ([\w.]+))", code, re.MULTILINE
        )
    }
    assert {name for name in modules if name.startswith("clickgym.")} <= {
        "clickgym.agents",
        "clickgym.envs",
    }
    assert {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) <= {
        "checks",
        "clickgym",
        "clickgym_logs",
        "gymnasium",
        "matplotlib",
        "numpy",
        "polars",
    }


def test_check_of_an_answer(capsys):
    spec = importlib.util.spec_from_file_location("course_checks", FOLDER / "course" / "checks.py")
    checks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checks)
    check = checks.Check(lambda answer: answer + 1 == 3, "Half of four.")
    for answer in (..., 1, "two", 2):
        check(answer)
    empty, wrong, error, right = capsys.readouterr().out.splitlines()
    assert empty.startswith("No answer yet")
    assert wrong == "Not right yet. Hint: Half of four."
    assert error.startswith("Not right yet (TypeError: ")
    assert error.endswith("Hint: Half of four.")
    assert right == "Right."


@pytest.mark.slow
@by_lesson
def test_lesson_runs(file):
    """The checks refuse the empty answers and take the solutions."""
    nbclient = pytest.importorskip("nbclient", reason='needs pip install "clickgym[notebooks]"')
    nbformat = pytest.importorskip("nbformat", reason='needs pip install "clickgym[notebooks]"')
    pytest.importorskip("ipykernel", reason='needs pip install "clickgym[notebooks]"')
    book = nbformat.read(file, as_version=4)
    where = {"metadata": {"path": str(file.parent)}}
    nbclient.NotebookClient(book, timeout=300, resources=where).execute()
    right = {"check": [], "solution": []}
    for cell in book.cells:
        if role(cell) in right:
            streams = [out["text"] for out in cell.outputs if out["output_type"] == "stream"]
            right[role(cell)].append("Right." in "".join(streams).splitlines())
    assert not any(right["check"])
    assert all(right["solution"])
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", ()) for output in outputs) >= 2
    assert not [output for output in outputs if output.get("name") == "stderr"]
