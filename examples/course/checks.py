"""The checks of the course: each says whether an answer to an exercise is right, and gives a hint
if it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Check:
    """The check of one exercise, called with an answer.

    Args:
        right: returns whether an answer is right.
        hint: printed with a wrong answer.
    """

    def __init__(self, right: Callable[[Any], Any], hint: str) -> None:
        self.right, self.hint = right, hint

    def __call__(self, answer: Any) -> None:
        if answer is ...:
            print("No answer yet: replace the three dots above, run that cell, then run this one.")
            return
        try:
            right = bool(self.right(answer))
        except NotImplementedError:  # what the classes of exercises raise until they are written
            print("No answer yet: write the method above, run that cell, then run this one.")
            return
        # an answer of another type or shape is wrong, and no reason to stop the notebook
        except Exception as error:
            print(f"Not right yet ({type(error).__name__}: {error}). Hint: {self.hint}")
            return
        print("Right." if right else f"Not right yet. Hint: {self.hint}")

    def accepts(self, answer: Any) -> bool:
        """Whether an answer is right. An answer that raises an error is not."""
        try:
            return bool(self.right(answer))
        except Exception:
            return False
