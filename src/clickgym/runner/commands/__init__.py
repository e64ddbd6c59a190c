"""Commands of the command line that run, merge and report; the Python functions that they call lie
beside this folder.

What is listed here is for commands of other packages.
"""

from . import names
from .list import list_

__all__ = ["list_", "names"]
