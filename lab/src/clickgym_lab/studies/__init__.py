"""Experiments of papers, and ours: each file with `SWEEPS` is a study by the file's name."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from runpy import run_path

from clickgym.core.checks import unknown

from .study import Study, naming_its_line, study_of


@cache
def studies() -> dict[str, Study]:
    """The studies of this package by their names."""
    files = [file.name for file in iter_modules(__path__)]
    modules = {file: vars(import_module(f"{__name__}.{file}")) for file in files}
    found = [study_of(file, names) for file, names in modules.items() if "SWEEPS" in names]
    return {study.name: study for study in found}


def find_study(name: str) -> Study:
    """A study of this package by its name, or of one's own by its file.

    Raises:
        ValueError: there is no such study, or the file holds none.
        OSError: the file cannot be read.
    """
    if name.endswith(".py"):
        with naming_its_line(name):
            names = run_path(name)
        return study_of(name, names)
    if name not in studies():
        raise ValueError(unknown("study", name, studies()))
    return studies()[name]
