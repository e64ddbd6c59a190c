"""Entry point of ``python -m clickgym``, which runs the command ``clickgym``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
