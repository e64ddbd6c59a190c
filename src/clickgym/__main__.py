"""The command `clickgym`, also as ``python -m clickgym``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
