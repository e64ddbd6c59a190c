"""Instances: ready-made problems by name, by seed, or from a file. This folder also holds the
shipped real queries.
"""

from . import families, query_family, stateful, worlds  # noqa: F401 - they register their families
from .instance import (
    DEFAULT_INSTANCE,
    AnyInstance,
    Instance,
    list_instances,
    load_instance,
)

__all__ = ["DEFAULT_INSTANCE", "AnyInstance", "Instance", "list_instances", "load_instance"]
