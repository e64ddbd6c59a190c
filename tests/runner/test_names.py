"""Labels that are typed: one grammar for the command line, for files and in Python; seeds, tables
and folders hang on them.
"""

import pytest

from clickgym.core.specs import parse_spec
from clickgym.runner.make import by_label, split_label

# ------------------------------------------------------------------------------------------ grammar


@pytest.mark.parametrize(
    ("text", "label", "name", "arguments"),
    [
        ("TopRank", None, "TopRank", {}),
        ("TopRank:delta=0.1", None, "TopRank", {"delta": 0.1}),
        ("my:Agent:alpha=0.1", None, "my:Agent", {"alpha": 0.1}),
        ("PBMRank-v0:instance=uniform:seed=3", None, "PBMRank-v0", {"instance": "uniform:seed=3"}),
        ("mine=TopRank", "mine", "TopRank", {}),
        (
            "mine, tuned (2)=my:Agent:alpha=0.1,beta=[1,2]",
            "mine, tuned (2)",
            "my:Agent",
            {"alpha": 0.1, "beta": [1, 2]},
        ),
        (
            "easy=PBMRank-v0:instance=uniform:seed=3",
            "easy",
            "PBMRank-v0",
            {"instance": "uniform:seed=3"},
        ),
    ],
)
def test_label_before_the_equals_sign(text, label, name, arguments):
    there, spec = split_label(text)
    assert there == label
    assert parse_spec(spec) == (name, arguments)
    assert list(by_label("agent", [text])) == [text if label is None else label]


@pytest.mark.parametrize("spec", ["uniform:n_items=10:seed=2", "PBMRank-v0:cutoff=2:reward=clicks"])
def test_a_colon_for_a_comma_is_named(spec):
    with pytest.raises(ValueError, match=f"^'{spec}': expected a comma before the next key"):
        parse_spec(spec)


@pytest.mark.parametrize(
    ("text", "value"),
    [("False", False), ("false", False), ("None", None), (".5", 0.5), ("1e3", 1000.0), ("a", "a")],
)
def test_values_are_read_as_by_python(text, value):
    assert parse_spec(f"Agent:alpha={text},beta=1") == ("Agent", {"alpha": value, "beta": 1})
