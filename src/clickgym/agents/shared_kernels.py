"""Kernels for your own agents, under the name by which you import them: `rank_by_index` and others
of `common`.
"""

from .common.kl_bounds import exploration, kl, kl_lower, kl_upper
from .common.ranking import rank_by_draw, rank_by_index, show, show_any, show_at, shuffle_front

__all__ = [
    "exploration",
    "kl",
    "kl_lower",
    "kl_upper",
    "rank_by_draw",
    "rank_by_index",
    "show",
    "show_any",
    "show_at",
    "shuffle_front",
]
