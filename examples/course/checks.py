"""Checks for the exercises of the course, which test an answer and give a hint if it is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any


class Check:
    """The check for one exercise. Call the check with an answer to print whether it is right.

    Args:
        right: a function that takes an answer and returns whether it is right.
        hints: the hints to print after the first wrong answer, the second, and so on. Further
            wrong answers repeat the last hint.
    """

    mistakes: Counter[tuple[str, ...]] = Counter()
    """The number of wrong answers to each exercise, which is identified by its hints. All checks
    share this counter, because running a cell again makes a new check.
    """

    def __init__(self, right: Callable[[Any], Any], *hints: str) -> None:
        self.right, self.hints = right, hints
        self.answered = False
        """True if the latest answer was right. Only then does the solution print its results."""

    def __call__(self, answer: Any) -> None:
        if any(part is ... for part in (answer if isinstance(answer, tuple) else (answer,))):
            print("No answer yet: replace the three dots above, run that cell, then run this one.")
            return
        right, raised = False, ""
        try:
            right = bool(self.right(answer))
        except NotImplementedError:  # the reader has not written the function or method yet
            print("No answer yet: write the code above, run that cell, then run this one.")
            return
        # An answer with the wrong type or shape is wrong, but must not stop the notebook.
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
        """Return whether an answer is right. An answer that raises an error is wrong."""
        try:
            return bool(self.right(answer))
        except Exception:
            return False
