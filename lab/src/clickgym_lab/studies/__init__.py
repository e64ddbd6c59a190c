"""Studies: experiments of papers and ours, a file each, which are found here by their names."""

import pkgutil
from importlib import import_module

from .study import Study

_modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
STUDIES: dict[str, Study] = {
    study.name: study for module in _modules if (study := getattr(module, "STUDY", None))
}
"""The `STUDY` of each file of this folder, by its name."""
