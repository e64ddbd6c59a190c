"""The table of docs/rl.md that says where each learner plays, cell by cell."""

import re
from pathlib import Path

import pytest
from slow import slow

import clickgym
from clickgym.agents import LEARNERS

pytest.importorskip("sb3_contrib")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "rl.md").read_text(encoding="utf-8")
[SECTION] = re.findall("<!-- places -->\n(.*)\n<!-- end of places -->", PAGE, re.DOTALL)
COLUMNS, _, *ROWS = [line.strip("| ").split(" | ") for line in SECTION.splitlines() if line.startswith("|")]
[SENTENCE] = re.findall("The columns are those of .*", SECTION)
ENVIRONMENTS = dict(zip(COLUMNS[-8:], re.findall("`(.*?)`", SENTENCE), strict=True))
CELLS = {(row[0].strip("`"), column): way.strip("`") for row in ROWS for column, way in zip(ENVIRONMENTS, row[1:], strict=True)}
REASONS = {
    (name, column): reason for name, column, reason in re.findall(r"- `(\w+)`, ([\w, ]+): (.*)\.$", SECTION, re.MULTILINE)
}


def spec(name, **more):
    settings = {"n_envs": 8, "learning_starts": 16, "batch_size": 8, "n_steps": 10 if name == "MaskablePPO" else 4}
    return name, {key: value for key, value in settings.items() if key in LEARNERS[name].settings} | more


def test_the_page_has_a_cell_for_every_learner_and_kind_of_environment():
    kinds = ("plain", "contextual", "arrival", "bots", "churn", "available", "memory", "memory, bots")
    assert CELLS.keys() == {(name, kind) for name in LEARNERS for kind in kinds}


QUICK = [cell for cell in CELLS if cell[0] in ("A2C", "SAC") or cell in REASONS]


@pytest.mark.parametrize(("name", "kind"), [*QUICK, *slow(*(cell for cell in CELLS if cell not in QUICK))])
def test_a_cell_is_what_happens(name, kind):
    """It plays 200 sessions by these actions; if they are not its default, or it cannot, for the printed reason."""
    env, way = ENVIRONMENTS[kind], CELLS[name, kind]
    by_default = way == LEARNERS[name].representations[0]
    assert by_default == ((name, kind) not in REASONS)
    if not by_default:
        with pytest.raises(ValueError, match=re.escape(REASONS[name, kind])):
            clickgym.run(spec(name), env, 200, seed=0)
    if way != "–":
        result = clickgym.run(spec(name, actions=way), env, 200, seed=0)
        assert result.steps[-1] == 200
        assert result.regret[-1] > 0
