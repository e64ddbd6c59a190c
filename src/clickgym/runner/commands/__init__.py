"""Commands of the command line: each parses, calls one Python function, and prints.

`names` completes names in the shell; commands of other packages use it, too.
"""

from . import names

__all__ = ["names"]
