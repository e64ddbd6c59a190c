"""No test of version 1.0 is gone without a line that says what covers it; a test that moved is found by its name."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data" / "v1.0"


def test_what_version_1_0_tested_is_tested():
    before = (DATA / "tests.txt").read_text(encoding="utf-8").split()
    covered = tomllib.loads((DATA / "vanished.toml").read_text(encoding="utf-8"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in TESTS.rglob("test_*.py")]
    today = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef))
    missing = Counter(name_of(test) for test in before) - today
    assert Counter(map(name_of, covered)) == missing, "vanished.toml says what covers each test that is gone, and no other"
    assert set(covered) <= set(before)
    for test, reason in covered.items():
        names = re.findall(r"\btest_\w+", reason)
        assert names, f"the line of {test} names no test"
        assert all(today[name] for name in names), f"the line of {test} names a test that there is not"


def name_of(test: str) -> str:
    return test.partition("::")[2]
