"""The checks of the course: each says whether an answer to an exercise is right, and gives a hint
if it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any


class Check:
    """The check of one exercise, called with an answer.

    Args:
        right: returns whether an answer is right.
        hints: printed with wrong answers, the first with the first one, and so on; the last with
            all that follow.
    """

    mistakes: Counter[tuple[str, ...]] = Counter()
    """Wrong answers so far by the hints, since the cell of a check makes a new one each time."""

    def __init__(self, right: Callable[[Any], Any], *hints: str) -> None:
        self.right, self.hints = right, hints
        self.answered = False
        """Whether an answer was right. A solution prints its results only then."""

    def __call__(self, answer: Any) -> None:
        if any(part is ... for part in (answer if isinstance(answer, tuple) else (answer,))):
            print("No answer yet: replace the three dots above, run that cell, then run this one.")
            return
        right, raised = False, ""
        try:
            right = bool(self.right(answer))
        except NotImplementedError:  # what functions and classes raise until they are written
            print("No answer yet: write the code above, run that cell, then run this one.")
            return
        # an answer of another type or shape is wrong, and no reason to stop the notebook
        except Exception as error:
            raised = f" ({type(error).__name__}: {error})."
        self.answered = right
        if right:
            print("Right.")
            return
        hint = self.hints[min(self.mistakes[self.hints], len(self.hints) - 1)]
        self.mistakes[self.hints] += 1
        print(f"Not right yet{raised or '.'} Hint: {hint}")

    def accepts(self, answer: Any) -> bool:
        """Whether an answer is right. An answer that raises an error is not."""
        try:
            return bool(self.right(answer))
        except Exception:
            return False
