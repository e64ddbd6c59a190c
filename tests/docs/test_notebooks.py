"""The notebooks of the course run from the first cell to the last and hold no outputs; their checks
refuse empty answers and take the solutions.
"""

import json
import runpy
from pathlib import Path

import pytest

WRONG = [
    (1, 3, "ratio = examination[1] / examination[0]"),
    (2, 2, "loss_per_session = 0.04"),  # the square of ε
    (3, 3, "cascade_estimate = attraction"),
    (4, 4, "regret_from_worst = 16_101"),  # the last five in reverse
    (5, 7, "price_of_detection = 0.61"),  # of the window to detection
    (6, 3, "refused = proposed"),
    (7, 2, "orders = np.argsort(-(two_users @ three_items.T))"),
]
"""A plausible answer to one exercise of each lesson, which its check refuses: lesson, exercise,
code.
"""

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "course"
NOTEBOOKS = {file.stem: file for file in sorted(FOLDER.glob("*.ipynb"))}


def cells_of(name):
    return json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_has_no_outputs(name):
    for cell in cells_of(name):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_check_of_an_answer(capsys):
    checks = runpy.run_path(str(FOLDER / "checks.py"))
    words = ("No answer yet", "No answer yet", "Half of four", "TypeError", "Right.", "It is two")
    for answer, word in zip((..., (1, ...), 1, "two", 2, 1), words, strict=True):
        # each time a new check, as in a cell that runs again
        check = checks["Check"](lambda answer: answer + 1 == 3, "Half of four.", "It is two.")
        check(answer)
        assert check.answered == check.accepts(answer) == (answer == 2)
        assert word in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_checks_of_a_lesson(name):
    """An exercise has an empty answer, a check and a solution: without an answer a check says so
    and gives no hint, its solution is right and shows nothing. Checks refuse the answers above.
    """
    nbclient = pytest.importorskip("nbclient", reason="needs pip install --group notebooks")
    nbformat = pytest.importorskip("nbformat", reason="needs pip install --group notebooks")
    pytest.importorskip("ipykernel", reason="needs pip install --group notebooks")
    book = nbformat.read(NOTEBOOKS[name], as_version=4)
    checks, solutions = (
        [x.source for x in book.cells if role in x.metadata.get("tags", ())]
        for role in ("check", "solution")
    )
    assert len(checks) == len(solutions) > 0
    for number, source in enumerate(solutions, 1):
        assert f"assert check_{number}.accepts(" in source
    for notebook, exercise, code in WRONG:
        if name.startswith(f"{notebook}_"):
            source = f"{code}\n{checks[exercise - 1]}"
            cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["wrong"]})
            book.cells.append(cell)
    where = {"metadata": {"path": str(NOTEBOOKS[name].parent)}}
    nbclient.NotebookClient(book, timeout=900, resources=where).execute()
    printed = {"check": [], "wrong": []}
    for cell in book.cells:
        tags = set(cell["metadata"].get("tags", ()))
        assert "solution" not in tags or not cell.outputs, cell.outputs
        for role in printed.keys() & tags:
            printed[role].append("".join(out.get("text", "") for out in cell.outputs))
    for text in printed["check"]:
        assert text.startswith("No answer yet")
        assert "Hint" not in text
    for text in printed["wrong"]:
        assert text.startswith("Not right yet."), text
