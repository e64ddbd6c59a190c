"""The notebooks of examples/: they run, at a small size, and hold no outputs; and those of its
course teach what they say.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
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


def test_there_are_three():
    assert [file.stem for file in NOTEBOOKS] == [
        "01_first_comparison",
        "02_own_agent_and_click_model",
        "03_from_a_log_to_a_decision",
    ]


@pytest.fixture
def beside(file, monkeypatch):
    """What stands beside a notebook can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))


@by_notebook
def test_outputs_are_stripped(file):
    for cell in cells_of(file):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not cell["metadata"]


@by_notebook
def test_the_code_runs_in_plain_python(file, beside, tmp_path):
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
def test_it_runs_as_a_notebook_and_shows_tables_and_figures(file, beside, tmp_path):
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
    assert any(
        "sessions" in output.get("data", {}).get("text/plain", "") for output in outputs
    )  # the bar of a sweep


# ------------------------------------------------------------------------------------------------------------- the course

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


def test_the_course_has_seven_notebooks():
    assert [file.stem for file in COURSE] == [
        "1_clicks_lie",
        "2_explore_or_not",
        "3_the_cascade",
        "4_what_you_are_told",
        "5_users_that_change",
        "6_from_a_log_to_an_agent",
        "7_every_user_another_list",
    ]


@by_lesson
def test_a_lesson_is_stored_without_outputs_and_folds_checks_and_solutions(file):
    for cell in cells_of(file):
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert cell["metadata"] == METADATA[role(cell)]


@by_lesson
def test_a_lesson_begins_with_what_it_teaches_and_needs(file):
    first = "".join(cells_of(file)[0]["source"])
    assert first.startswith(f"# {file.stem[0]}. ")
    assert "**At the end you can**" in first
    assert "**You need**" in first
    assert "[glossary](../../docs/glossary.md)" in first
    assert 20 <= int(re.search(r"\*\*Time:\*\* about (\d+) minutes", first)[1]) <= 40
    assert text_of(file).count("\n## In short\n") == 1


@by_lesson
def test_each_exercise_has_a_check_and_a_solution(file):
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
def test_a_lesson_imports_public_packages_only(file):
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


@by_lesson
def test_the_links_of_a_lesson_lead_to_files(file):
    links = re.findall(r"\]\((?!https:)([^)#]+)", text_of(file))
    assert links
    assert not [link for link in links if not (file.parent / link).exists()]


def test_a_check_says_what_is_right(capsys):
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


REGRET = """
from functools import partial

import polars as pl


def regret_of(results, agent, step=None, env=None):
    frame = results.frame
    frame = frame.filter((frame["agent"] == agent) & (frame["step"] == (step or frame["step"].max())))
    return (frame if env is None else frame.filter(frame["env"] == env))["regret"].mean()


def tied(results, *agents, env=None):
    rows = results.table().filter(True if env is None else pl.col("env") == env).select("agent", "tied_with").rows()
    return all(set(agents) - {agent} <= set(ties) for agent, ties in rows if agent in agents)


def less(results, *agents, env=None):
    # Whether each agent has lost less than the next one, and chance does not explain it.
    pairs, of = zip(agents, agents[1:]), partial(regret_of, results, env=env)
    return all(of(first) < of(second) and not tied(results, first, second, env=env) for first, second in pairs)
"""
CLAIMS = {
    "1_clicks_lie": {
        "By click-through rate, B is second and D is fourth. In truth B is the most attractive item and D is the second.": (
            "order(ctr) == 'A B C D E' and order(attraction).startswith('B D')"
        ),
        "Each loop ends with the list with which it began.": (
            "all(list(rank_by_ctr(start)) == start for start in ([0, 1, 2, 3, 4], [0, 3, 1, 2, 4], [1, 3, 0, 2, 4]))"
        ),
        "The left side is 0.33, so A stays.": "np.isclose(examination[1] * attraction[1], 0.33) and 0.33 < attraction[0]",
        "The rates are too small, but all by nearly the same factor, the mean of the examination probabilities.": (
            "np.allclose(random_ctr / attraction, examination.mean(), atol=0.02)"
        ),
        "The correction gives the right order from the list that misled us before": "order(correction) == order(attraction)",
        "While they are shown, they lose more clicks than the biased list.": "by_random > by_list",
    },
    "2_explore_or_not": {
        "A run whose curve becomes flat has found the best item.": "0 < n_stuck < RUNS",
        "A value between the two loses less than both.": "set(epsilons.table()['agent'][:2]) == {'ε = 0.02', 'ε = 0.1'}",
        "The worse the item, the fewer sessions it gets.": "(np.diff(n) > 0).all()",
        "The upper ends of the bars are nearly at the same height": (
            "np.ptp(np.bincount(log.items[:, 0], log.clicks[:, 0]) / n + np.sqrt(1.5 * np.log(10_000) / n)) < 0.01"
        ),
        "Their cumulative regret grows more and more slowly.": (
            "all(regret_of(everything, each) < 2 * regret_of(everything, each, 10_000)"
            " for each in ('CascadeUCB1', 'CascadeKLUCB', 'CascadeTS'))"
        ),
    },
    "3_the_cascade": {
        "The other two agents have lost several times as much at the horizon": (
            "less(in_cascade, 'CascadeTS', 'CascadeKLUCB', 'EpsilonGreedy', 'Random')"
            " and regret_of(in_cascade, 'EpsilonGreedy') > 3 * regret_of(in_cascade, 'CascadeKLUCB')"
        ),
        "The estimate of the item at position 1 is right, since that position is always examined. The others are too small.": (
            "abs(cascade_estimates(wrong_log)[0] - 0.7) < 0.02"
            " and (cascade_estimates(wrong_log) < attraction[wrong] - 0.1)[1:].all()"
        ),
        "Item 0 attracts with probability 0.9 and looks worse than item 2, which attracts with probability 0.7.": (
            "cascade_estimates(wrong_log)[2] < cascade_estimates(wrong_log)[0]"
        ),
        "Its estimate is about 0.3.": "abs(cascade_estimates(wrong_log)[2] - 0.3) < 0.02",
        "Several lists are confirmed by their own clicks.": (
            "all((np.diff(cascade_estimates(each)) < 0).all() for each in (best_log, wrong_log))"
        ),
        "Others stay with a wrong order, and their regret grows in a straight line.": (
            "all(0 < (late_regret(in_pbm, each) > 0.02).sum() < RUNS for each in ('CascadeTS', 'CascadeKLUCB'))"
        ),
        "in the first 1,000 `TopRank` loses the most.": (
            "regret_of(in_pbm, 'TopRank', 1_000)"
            " > 1.5 * max(regret_of(in_pbm, each, 1_000) for each in ('CascadeTS', 'CascadeKLUCB', 'PBMHB'))"
        ),
        "At the horizon the table says that it is *tied* with the cascade agents: their means are larger": (
            "all(tied(in_pbm, 'TopRank', each) and regret_of(in_pbm, 'TopRank') < regret_of(in_pbm, each)"
            " for each in ('CascadeTS', 'CascadeKLUCB'))"
        ),
        "No run of these two agents loses more than 0.02 clicks per session in the second half.": (
            "all((late_regret(in_pbm, each) <= 0.02).all() for each in ('TopRank', 'PBMHB'))"
        ),
        "The score of the cascade model is minus infinity, because some sessions have several clicks. `PBM` and `UBM` are "
        "equally good up to chance.": (
            "scores['CM'] == -np.inf and abs(scores['PBM'] - scores['UBM']) < 0.005 and scores['DCM'] < scores['PBM'] - 0.05"
        ),
    },
    "4_what_you_are_told": {
        "`PBMHB` is told nothing and is tied with `PBMTS`.": "tied(knowledge, 'PBMHB', 'PBMTS')",
        "`PBMUCB` is told them and loses more than `PBMHB`.": "less(knowledge, 'PBMHB', 'PBMUCB')",
        "`CascadeTS` is told nothing, too, and loses more than `PBMHB`.": "less(knowledge, 'PBMHB', 'CascadeTS')",
        "Its mean is the largest of all, but it is tied with `PBMUCB`": (
            "knowledge.table()['agent'][-1] == 'CascadeTS' and tied(knowledge, 'CascadeTS', 'PBMUCB')"
        ),
        "The truth has the smallest mean": "min(of_power, key=of_power.get) == 'γ = 1.0'",
        "γ = 0, 1.25 and 2 cost more than the truth. γ = 0.5 and 0.8 are tied with it": (
            "all(less(false, 'γ = 1.0', f'γ = {each}') for each in (0.0, 1.25, 2.0))"
            " and all(tied(false, 'γ = 1.0', f'γ = {each}') for each in (0.5, 0.8))"
        ),
        "all other points are above the line of `PBMHB`": (
            "all(regret > mean_regret(knowledge)['PBMHB'] for power, regret in of_power.items() if power != 'γ = 1.0')"
        ),
        "Here even γ = 0 costs little, and γ = 4 costs several times the regret.": (
            "mean_regret(on_real)['γ = 0.0'] < 1.1 * mean_regret(on_real)['γ = 1.0']"
            " and mean_regret(on_real)['γ = 4.0'] > 3 * mean_regret(on_real)['γ = 1.0']"
        ),
        "In the first 50 sessions `BubbleRank` loses less than the two agents that start without knowledge.": (
            "regret_after(start, 'BubbleRank', 50) < min(regret_after(start, each, 50) for each in ('CascadeTS', 'TopRank'))"
        ),
        "The regret with the estimates is close to that with the truth.": (
            "mean_regret(with_estimate)['estimated'] < 1.2 * of_power['γ = 1.0']"
        ),
        "After 500 sessions `CascadeTS` has already lost less than `BubbleRank`.": (
            "regret_after(start, 'CascadeTS', 500) < regret_after(start, 'BubbleRank', 500)"
        ),
        "At the horizon it has lost more than both": "less(start, 'CascadeTS', 'TopRank', 'BubbleRank')",
        "It has lost less than `Fixed`": "less(start, 'BubbleRank', 'Fixed')",
        "A horizon that is 100 times too small or too large changes the regret by less than a third.": (
            "all(2 / 3 < regret / mean_regret(wrong_horizon)['told 20,000'] < 4 / 3"
            " for regret in mean_regret(wrong_horizon).values())"
        ),
    },
    "5_users_that_change": {
        "If users never change, both agents lose less than a tenth of this.": (
            "all(regret_of(forgetless, each, env='still') < 0.1 * regret_of(forgetless, each, env='moving')"
            " for each in ('CascadeTS', 'CascadeKLUCB'))"
        ),
        "`CascadeTS` loses more than `CascadeKLUCB` when users change, and less when they do not.": (
            "less(forgetless, 'CascadeKLUCB', 'CascadeTS', env='moving')"
            " and less(forgetless, 'CascadeTS', 'CascadeKLUCB', env='still')"
        ),
        "The best window is shorter than an epoch and long enough to be precise.": (
            "less(tried, 'τ = 1000', 'τ = 200', 'τ = 50') and less(tried, 'τ = 1000', 'τ = 5000')"
        ),
        "Why does τ = 20,000, which forgets nothing, lose less than τ = 5,000?": "less(tried, 'τ = 20000', 'τ = 5000')",
        "If users never come back, the order of the two is reversed": (
            "less(clickgym.sweep({'new': PiecewiseStationaryModel([*epochs[:2], CascadeModel([0.1, 0.3, 0.5, 0.4, 0.1, 0.2],"
            " 2), CascadeModel([0.4, 0.1, 0.1, 0.1, 0.2, 0.5], 2)], starts=[0, EPOCH, 2 * EPOCH, 3 * EPOCH])},"
            " {f'τ = {tau}': (CascadeSWUCB, {'tau': tau}) for tau in taus}, HORIZON, RUNS, progress=False),"
            " 'τ = 5000', 'τ = 20000')"
        ),
        "detection loses least, and the window with its default length loses less than the agent that never forgets. "
        "Discounting with its default loses more": (
            "less(all_ways, 'GLRCascadeKLUCB', 'CascadeSWUCB', 'CascadeKLUCB', 'CascadeDUCB', env='moving')"
        ),
        "If users never change, detection loses more than `CascadeKLUCB`, but less than twice as much.": (
            "less(all_ways, 'CascadeKLUCB', 'GLRCascadeKLUCB', env='still') and ratio < 2"
        ),
        "With n = 100 and a threshold of 0.25, the detector needs less than 100 sessions to detect it.": (
            "1_000 < reports[0] < 1_100"
        ),
        "The window loses more than that": (
            "regret_of(all_ways, 'CascadeSWUCB', env='still') > 2 * regret_of(all_ways, 'CascadeKLUCB', env='still')"
        ),
    },
    "6_from_a_log_to_an_agent": {
        "The cascade model has the score minus infinity, since some users click twice. `PBM` and `UBM` predict best": (
            "scores['CM'] == -np.inf and min(scores['PBM'], scores['UBM']) > scores['DCM']"
        ),
        'Three of the intervals contain the truth. That of `"dcm"` does not': (
            "[low <= truth.expected_reward(proposed) <= high for low, high in ("
            "evaluate(fitted.test, FixedPolicy(proposed), each, logging=logging if each == 'item-position' else None).interval"
            " for each in ('pbm', 'ubm', 'dcm', 'item-position'))] == [True, True, False, True]"
        ),
        "For these users `CascadeTS` loses least": "less(results, 'CascadeTS', 'PBMHB', 'CascadeKLUCB', 'TopRank', 'Fixed')",
        "The regret of both is less than half of that of `TopRank`.": (
            "regret_of(results, 'PBMHB') < 0.5 * regret_of(results, 'TopRank')"
        ),
        "The estimates of the two lists of step 3 overlap": (
            "max(evaluate(fitted.test, FixedPolicy(each), 'pbm').interval[0] for each in (proposed, naive_list))"
            " < min(evaluate(fitted.test, FixedPolicy(each), 'pbm').interval[1] for each in (proposed, naive_list))"
        ),
        "`PBMHB` loses less, the more of the log it has learned from.": (
            "warm['PBMHB', 0] > warm['PBMHB', 1_000] > warm['PBMHB', SESSIONS]"
        ),
        "`CascadeKLUCB` loses more after the whole log than without any log.": (
            "warm['CascadeKLUCB', SESSIONS] > warm['CascadeKLUCB', 0]"
        ),
    },
    "7_every_user_another_list": {
        "One order for all goes little more than half of the way.": "0.5 < (one_order - by_chance) / (best - by_chance) < 0.6",
        "With plain features, `LinearTS` and `PBMLinUCB` lose more than the best order for all users": (
            "all(regret_of(linear, each, env='plain') > (best - one_order) * HORIZON for each in agents[:2])"
        ),
        "In every session they lose about as much as in the one before": (
            "all(1.8 < regret_of(linear, each, env='plain') / np.interp(HORIZON / 2, *mean_curve(linear, 'plain', each)) < 2.2"
            " for each in agents[:2])"
        ),
        "With products each of them loses less than a quarter of what it loses without.": (
            "all(regret_of(linear, each, env='outer') < 0.25 * regret_of(linear, each, env='plain') for each in agents[:2])"
        ),
    },
}
"""Sentences of the course that state an order or a figure, with what must hold after the notebook
has run.
"""

ORDERS = re.compile(r"\b(?:loses?|lost) (?:the )?(?:most|least|more|less)\b")


@pytest.mark.parametrize("file", COURSE[2:], ids=[file.stem for file in COURSE[2:]])
def test_who_loses_more_or_less_is_a_claim_that_is_checked_beside_ties(file):
    sentences = re.split(r"(?<=[.:?])\s+", " ".join(text_of(file).split()))
    orders = [each.removeprefix("- ") for each in sentences if ORDERS.search(each) and "`" in each]
    claimed = " ".join(CLAIMS[file.stem])
    assert not [
        each
        for each in orders
        if not any(part in claimed for part in (each, each.partition(",")[0]))
    ]


@pytest.mark.slow
@by_lesson
def test_a_lesson_runs_and_what_it_says_holds(file, monkeypatch):
    """The checks refuse the empty answers and take the solutions; each claim is evaluated by the
    notebook's own kernel.
    """
    nbclient = pytest.importorskip("nbclient", reason='needs pip install "clickgym[notebooks]"')
    nbformat = pytest.importorskip("nbformat", reason='needs pip install "clickgym[notebooks]"')
    pytest.importorskip("ipykernel", reason='needs pip install "clickgym[notebooks]"')
    book = nbformat.read(file, as_version=4)
    claims = CLAIMS[file.stem]
    words = " ".join(text_of(file).split())
    assert not [sentence for sentence in claims if sentence not in words]
    book.cells += [
        nbformat.v4.new_code_cell(source)
        for source in (REGRET, *(f"bool({claim})" for claim in claims.values()))
    ]
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(file.parent)}}
    ).execute()
    values = [cell.outputs[0]["data"]["text/plain"] for cell in book.cells[-len(claims) :]]
    assert not [sentence for sentence, value in zip(claims, values, strict=True) if value != "True"]
    printed = {"check": [], "solution": []}
    for cell in book.cells:
        if role(cell) in printed:
            text = "".join(
                output["text"] for output in cell.outputs if output["output_type"] == "stream"
            )
            printed[role(cell)].append("Right." in text.splitlines())
    assert not any(printed["check"])
    assert all(printed["solution"])
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert Counter(kind for output in outputs for kind in output.get("data", ()))["image/png"] >= 2
    assert not [output for output in outputs if output.get("name") == "stderr"]
