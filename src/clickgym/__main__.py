"""The command `clickgym`, also as ``python -m clickgym``."""

import sys

from .runner.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
