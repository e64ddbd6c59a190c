"""Checks of the exercises: each says whether an answer is right, and gives a hint if it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any


class Check:
    """The check of one exercise. Call it with an answer.

    Args:
        right: takes an answer and returns whether it is right.
        hints: the first is printed after the first wrong answer, and so on; the last is repeated.
    """

    mistakes: Counter[tuple[str, ...]] = Counter()
    """How many wrong answers each exercise has had, by its hints. All checks share this counter,
    because running a cell again makes a new check.
    """

    def __init__(self, right: Callable[[Any], Any], *hints: str) -> None:
        self.right, self.hints = right, hints
        self.answered = False
        """Whether the latest answer was right. Only then does a solution print its results."""

    def __call__(self, answer: Any) -> None:
        if any(part is ... for part in (answer if isinstance(answer, tuple) else (answer,))):
            print("No answer yet: replace the three dots above, run that cell, then run this one.")
            return
        right, raised = False, ""
        try:
            right = bool(self.right(answer))
        except NotImplementedError:  # raised by functions and classes until they are written
            print("No answer yet: write the code above, run that cell, then run this one.")
            return
        # an answer of the wrong type or shape is wrong, but must not stop the notebook
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
        """Whether an answer is right. An answer that raises an error is wrong."""
        try:
            return bool(self.right(answer))
        except Exception:
            return False
