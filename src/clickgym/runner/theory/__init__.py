"""Theory: bounds on the regret, and the assumptions under which they hold."""

from .applicable import BoundCurve, applicable_bounds
from .bounds import BOUNDS

__all__ = ["BOUNDS", "BoundCurve", "applicable_bounds"]
