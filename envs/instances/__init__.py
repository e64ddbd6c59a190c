"""Instances: ready-made problems by name, by seed, or from a file. This folder also holds the
shipped real queries.
"""

from . import families, queries, stateful, worlds
from .instance import (
    DEFAULT_INSTANCE,
    FAMILIES,
    AnyInstance,
    Instance,
    list_instances,
    load_instance,
)

FAMILIES.update(families.FAMILIES | queries.FAMILIES | stateful.FAMILIES | worlds.FAMILIES)

__all__ = ["DEFAULT_INSTANCE", "AnyInstance", "Instance", "list_instances", "load_instance"]
