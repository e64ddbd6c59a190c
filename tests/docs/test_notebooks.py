"""Tests of the course's notebooks: they run from the first cell to the last and hold no outputs,
and their checks reject empty answers and accept the solutions.
"""

import json
import runpy
from pathlib import Path

import pytest

DETECTOR = """
def detect(clicks, n, threshold):
    for t in range({begin}, len(clicks) + 1):
        change = clicks[: t - n].mean() - clicks[t - n : t].mean()
        if {change} > threshold:
            return t
"""
UCB, BONUS = (
    "UCB.index = lambda self:",
    "np.sqrt(self.factor * np.log(self.shown.sum()) / self.shown)",
)
DRAWN = "self.rng.beta(1 + self.clicked, 1 + self.shown - self.clicked, (200, 2))"
THOMPSON = "Thompson.index = lambda self:"
WRONG = [
    (1, 2, "ctr_of_positions = lambda log: random_log.clicks.mean(axis=0)"),
    (1, 3, "ratio = examination[1] / examination[0]"),
    (1, 4, "corrected = lambda log, chi: solution_4(log, examination)"),
    (2, 2, "loss_per_session = 0.04"),  # the square of ε
    (2, 3, f"{UCB} np.where(self.shown > 0, self.click_rate() + {BONUS}, math.inf) / 2"),
    (2, 3, f"{UCB} self.click_rate() + {BONUS}"),  # not a number in the first session
    (2, 4, f"{THOMPSON} self.rng.beta(self.clicked, 1 + self.shown - self.clicked)"),
    (2, 4, f"{THOMPSON} np.quantile({DRAWN}, self.rng.random(), axis=0)"),  # not independent
    (2, 5, "by_epsilon = solution_5()\nassert check_5.accepts((by_epsilon, .1))\nbest_epsilon = 1"),
    (3, 2, "examined = lambda clicks: np.arange(3) <= (clicks.argmax() if clicks.any() else 2)"),
    (3, 3, "cascade_estimate = attraction"),
    (3, 4, "estimates_of_best, is_confirmed = [0.903, 0.666, 0.464], True"),  # of the list 0, 1, 3
    (3, 4, "estimates_of_best, is_confirmed = cascade_estimates(right_log), False"),
    (3, 5, "share_of_several, share_in_cascade = 0.137, 0.137"),
    (4, 1, "require_examination = ['PBMUCB', 'PBMPIE', 'PBMTS', 'BCMPTS']"),
    (4, 2, "estimated_examination = examination"),
    (4, 3, "regret_with_estimate = of_power['γ = 1.0']"),
    (4, 4, "regret_from_worst = 16_101"),  # the last five in reverse
    (5, 3, "windows = solution_3()\nassert check_3.accepts((windows, 1_000))\nbest_tau = 50"),
    (5, 4, DETECTOR.format(begin="2 * n", change="change")),  # falls alone
    (5, 4, DETECTOR.format(begin="3 * n", change="abs(change)")),
    (5, 5, "epsilon, gamma = 0.125, 0.99"),
    (5, 7, "drift, price_of_detection = solution_7(), 0.61"),  # of the window to detection
    (6, 1, "earned = 0.84"),
    (6, 3, "refused = proposed"),
    (6, 4, "longer = solution_4()\nassert check_4.accepts((longer, 1.02))\nratio = 0.95"),
    (7, 2, "orders = np.argsort(-(two_users @ three_items.T))"),
    (7, 2, "orders = np.argsort(-(two_users @ weights.T @ three_items.T))"),
    (7, 3, "late_plain, late_outer = 0.287, 0.052"),  # of all sessions
    (7, 4, "if_all_agree, cost_of_products = solution_4(), 0.18"),  # of the users who differ
]
"""Plausible wrong answers that the checks must reject: lesson, exercise, code."""

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
        # a new check each time, as when a cell runs again
        check = checks["Check"](lambda answer: answer + 1 == 3, "Half of four.", "It is two.")
        check(answer)
        assert check.answered == check.accepts(answer) == (answer == 2)
        assert word in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_checks_of_a_lesson(name):
    """Each exercise has an empty answer, a check and a solution. Without an answer, the check says
    so and gives no hint. The solution is accepted and prints nothing. The wrong answers in `WRONG`
    are rejected.
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
