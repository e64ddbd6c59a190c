"""Studies: experiments of papers (one file per paper), and why some statements are contradicted (one file per question).

The results that ship are in ``lab/results``.
"""

import sys

from . import churn, warm_start
from .registry import STUDIES

# Seeds derive from the labels of agents, and those of two studies name the module in which their agents lay in version 2.
sys.modules |= {f"clickgym.lab.studies.{name}": module for name, module in (("churn", churn), ("warm_start", warm_start))}

__all__ = ["STUDIES"]
