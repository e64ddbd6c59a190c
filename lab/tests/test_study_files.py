"""Studies written in TOML: a study has what its file says, and every file of the package is
complete.
"""

import tomllib
from pathlib import Path

import numpy as np
import polars
import pytest

from clickgym_lab.studies import STUDIES, registry, study
from clickgym_lab.studies.reader import read_studies
from clickgym_lab.studies.rehearsal import rehearse
from clickgym_lab.studies.study import Curves, Finding

FILES = [
    Path(study.__file__).with_name(f"{name}.toml") for name in (*registry.PAPERS, *registry.OURS)
]
PART = """
[[parts]]
name = "here"
envs = ["CMRank-v0", "PBMRank-v0:cutoff=2"]
agents = ["Random", "TopRank"]
horizon = 1_000
runs = 2
queries = 3
"""
STUDY = """
[mine]
title = "T"
paper = "P"
notes = ""
figure = "draw"
"""


def draw(evidence):
    """Nothing."""


def studies(folder, text, **names):
    """The studies of a file beside a module with these functions and constants."""
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return read_studies(str(folder / "mine.py"), {"draw": draw, **names})


def curves():
    """Regret of a tenth per session of Random, a hundredth of TopRank, in two runs."""
    rates = {"Random": 0.1, "TopRank": 0.01}
    rows = [
        (env, "one", agent, run, step, rate * step)
        for env in ("CMRank-v0", "PBMRank-v0:cutoff=2")
        for agent, rate in rates.items()
        for run in range(2)
        for step in range(100, 1001, 100)
    ]
    return Curves(
        polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row")
    )


# -------------------------------------------------------------------------------------------------- those of the package


def test_every_file_belongs_to_a_module_of_the_registry():
    assert set(FILES) == set(Path(study.__file__).parent.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_study_of_a_file_is_read_and_complete(file):
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    names = [name for name in tables if name not in ("constants", "parts")]
    assert names == [name for name in STUDIES if name in names]
    played = set()
    for name in names:
        read = STUDIES[name]
        assert len(read.statements) >= len(tables[name]["statements"])
        texts = [read.title, read.paper, read.notes]
        for statement in read.statements:
            assert statement.text
            assert statement.rule
            texts += [statement.text, statement.rule, statement.paper]
        for text in texts:  # each is one line, and every constant that it names is filled in
            assert text == text.strip()
            assert "  " not in text
            assert not set("{}\n\\") & set(text)
        assert len({statement.text for statement in read.statements}) == len(read.statements)
        played |= {part.name for part in read.parts}
    # What no study has would be read, and never played.
    assert len(played) == sum(len(row.get("for", [{}])) for row in tables["parts"])


# --------------------------------------------------------------------------------------------------------- what is read


def test_a_function_is_called_for_each_value_of_what_the_statement_is_over(tmp_path):
    calls = []

    def judge(one, **arguments):
        calls.append((one, arguments))
        return Finding("found", "yes")

    text = """
        [[mine.statements]]
        text = "A"
        rule = "R"
        late = true
        judge = "judge"
        part = "here"
        over = ["env", "agent"]
        env = ["CMRank-v0", "PBMRank-v0:cutoff=2"]
        agent = ["Random", "TopRank"]
        bound = 0.5

        [[mine.statements]]
        text = "B"
        rule = "R"
        judge = "judge"
        over = ["env"]
        label = "{env}, {bound}"
        env = ["PBMRank-v0:cutoff=2"]
        bound = 2

        [[mine.statements]]
        text = "C"
        rule = "R"
        judge = "judge"
    """
    each, labelled, alone = studies(tmp_path, PART + STUDY + text, judge=judge)["mine"].statements
    evidence = {"here": curves()}
    assert each.late
    assert (
        each.find(evidence).measured
        == "CM Random: found; CM TopRank: found; PBM Random: found; PBM TopRank: found"
    )
    assert calls[1] == (evidence["here"], {"env": "CMRank-v0", "agent": "TopRank", "bound": 0.5})
    assert labelled.find(evidence).measured == "PBM, 2: found"
    assert alone.find(evidence) == Finding("found", "yes")
    assert calls[-1] == (evidence, {})


def test_rows_stand_for_several_statements_alone_or_in_groups(tmp_path):
    text = """
        [[mine.statements]]
        for = [{ agent = "Random" }, { agent = "{BEST}" }]
        [[mine.statements.statements]]
        text = "{agent} learns"
        rule = "below {BOUND:g}"
        judge = "sublinear"
        part = "here"
        env = "CMRank-v0"
        agent = "{agent}"
        [[mine.statements.statements]]
        for = [{ share = 1 }, { share = 2 }]
        text = "{agent} {share} of {NAMES[0]}"
        rule = "R"
        judge = "linear"
        part = "here"
        env = "CMRank-v0"
        agent = "{agent}"
    """
    constants = {"BEST": "TopRank", "BOUND": 1e-3, "NAMES": ("two", "three")}
    statements = studies(tmp_path, PART + STUDY + text, **constants)["mine"].statements
    assert [statement.text for statement in statements] == [
        "Random learns",
        "Random 1 of two",
        "Random 2 of two",
        "TopRank learns",
        "TopRank 1 of two",
        "TopRank 2 of two",
    ]
    assert statements[0].rule == "below 0.001"
    assert statements[3].find({"here": curves()}) == study.sublinear(
        curves(), "CMRank-v0", "TopRank"
    )


def test_a_hypothesis_predicts_a_range_of_what_a_function_measures(tmp_path):
    text = """
        [[mine.statements]]
        text = "Cause"
        what = "regret"
        range = { Random = [90, 110], TopRank = [20, 30] }
        unit = " %"
        measured = "ends"
        part = "here"
        over = ["agent"]
        agent = ["Random", "TopRank"]
    """

    def ends(one, agent):
        return one.units("CMRank-v0", agent)[:, -1]

    (statement,) = studies(tmp_path, PART + STUDY + text, ends=ends)["mine"].statements
    assert (
        statement.rule
        == "the interval of regret lies within Random: 90 to 110 %; TopRank: 20 to 30 %"
    )
    assert statement.find({"here": curves()}) == Finding(
        "Random: 100 ± 0 %; TopRank: 10 ± 0 %", "no"
    )


def test_a_part_names_functions_with_their_arguments(tmp_path):
    part = """
        [constants]
        LENGTH = 1_000
        [[parts]]
        for = [{ kind = "few", names = ["a", "b"] }, { kind = "many", names = "{NAMES}" }]
        name = "here-{kind}"
        envs = ["CMRank-v0"]
        agents = "{AGENTS}"
        horizon = "{LENGTH}"
        runs = 2
        queries = 3
        instances = "{names}"
        files = { function = "written", kind = "{kind}" }
        facts = { seven = "seven" }
        metrics = ["violations"]
    """

    def written(names, kind):
        return [f"{kind}-{name}" for name in names]

    names = {
        "NAMES": ("c", "d", "e"),
        "AGENTS": ("Random", "TopRank"),
        "written": written,
        "seven": lambda env: 7.0,
    }
    statement = '[[mine.statements]]\ntext = "A"\nrule = "R"\njudge = "linear"'
    few, many = studies(tmp_path, part + STUDY + statement, **names)["mine"].parts
    assert (few.name, few.agents, few.horizon, few.metrics) == (
        "here-few",
        ("Random", "TopRank"),
        1000,
        ("violations",),
    )
    assert (few.instances([]), many.instances([])) == (["a", "b"], ["c", "d", "e"])
    assert many.files(["x"]) == ["many-x"]
    assert few.facts["seven"](None) == 7.0
    assert (few.least_runs, few.windows, few.each) == (4, 100, False)


def test_an_argument_that_a_function_does_not_have_is_noticed_before_anything_is_played(tmp_path):
    text = """
        [[mine.statements]]
        text = "A"
        rule = "R"
        judge = "linear"
        part = "here"
        env = "CMRank-v0"
        agnt = "Random"
    """
    mine = studies(tmp_path, PART + STUDY + text)["mine"]
    with pytest.raises(
        ValueError,
        match=r"study mine: the statement 'A' fails before anything is played: TypeError: .*agnt",
    ):
        rehearse("mine", mine, [(mine.parts[0], ["one"], np.arange(100, 1001, 100).tolist())])


def test_a_function_that_the_module_does_not_have_is_noticed_when_the_file_is_read(tmp_path):
    text = '[[mine.statements]]\ntext = "A"\nrule = "R"\njudge = "liner"'
    with pytest.raises(KeyError, match="liner"):
        studies(tmp_path, PART + STUDY + text)
