"""What docstrings of the lab show is what comes out; those of the other rooms: `tests/envs/test_envs.py`."""

import pytest
from docstrings import check_examples, module_names

PACKAGES = ("clickgym_lab", *(f"clickgym_lab.{room}" for room in ("bench", "commands", "studies")), "pages")


@pytest.mark.parametrize("module_name", [*module_names(*PACKAGES)])
def test_examples_in_docstrings_of_the_lab_are_true(module_name):
    check_examples(module_name)
