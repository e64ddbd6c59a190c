"""Import paths that version 1.0 showed in README, docs and examples still work, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from clickgym._moved import MOVED

SHOWN = {  # a module of version 1.0, a name in it, and where that is now
    "clickgym.runner.decision.decide": ("decide", "clickgym.offline.decision.decide"),
    "clickgym.runner.decision.page": ("write_decision", "clickgym.offline.decision.page"),
    "clickgym.envs.checks": ("check_positions", "clickgym.core.checks"),
    "clickgym.envs.kernels": ("cache_folder", "clickgym.core.kernels"),
    "clickgym.runner.bench.score": ("standing", "clickgym_lab.bench.score"),
    "clickgym.runner.studies": ("STUDIES", "clickgym_lab.studies"),
    "clickgym.runner.studies.run": ("run_study", "clickgym_lab.studies.play"),
    "clickgym.runner.formats": ("regret_text", "clickgym.core.formats"),
}


@pytest.mark.parametrize("old", SHOWN)
def test_an_import_path_of_1_0_works_and_names_the_new_one(old):
    name, new = SHOWN[old]
    for parent in (old, old.rpartition(".")[0]):
        if parent not in ("clickgym.runner", "clickgym.envs"):
            sys.modules.pop(parent, None)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved; import {new} instead"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert getattr(module, name) is getattr(importlib.import_module(new), name)
    assert module.__spec__.name == new


def test_every_moved_module_is_there():
    for new in MOVED.values():
        importlib.import_module(f"clickgym.{new}")


def test_a_script_of_1_0_runs_and_its_own_line_is_named(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("from clickgym.runner.decision.decide import decide\nimport clickgym\nassert decide is clickgym.decide\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "old.py:1: DeprecationWarning" in done.stderr


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"clickgym\.runner\.nothing"):
        importlib.import_module("clickgym.runner.nothing")
