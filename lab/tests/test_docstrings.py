"""What docstrings of the lab show is what comes out; those of the other rooms: `tests/envs/test_envs.py`."""

import pytest
from docstrings import check_examples, module_names


@pytest.mark.parametrize("module_name", [name for name in module_names() if name.startswith("clickgym_lab")])
def test_examples_in_docstrings_of_the_lab_are_true(module_name):
    check_examples(module_name)
