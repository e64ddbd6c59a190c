"""Instances: ready-made ranking problems, which you load by name, by seed, or from a file. This
folder also contains the files of the real queries that come with clickgym.
"""

from . import (  # noqa: F401 - imports register families
    contextual_families,
    families,
    memory_families,
    query_family,
)
from .instance import DEFAULT_INSTANCE, AnyInstance, Instance, list_instances, load_instance

__all__ = ["DEFAULT_INSTANCE", "AnyInstance", "Instance", "list_instances", "load_instance"]
