"""Arguments that consist of a kind and options, such as ``"farm:share=0.01:targets=3+7"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.checks import check_text, short, unknown


class Options:
    """A kind, the values that follow it, and its options, separated by colons.

    Args:
        name: the argument's name, for messages.
        value: as ``"delay:geometric:500:lost=0.1"``.
        expected: what it should look like, for messages.

    Attributes:
        kind: the first word.
        values: those after it that have no name.

    Raises:
        TypeError: the value is no text.
        ValueError: an option is given twice, or a value stands behind an option.
    """

    def __init__(self, name: str, value: str, expected: str) -> None:
        self.name, self.text, self.expected = name, check_text(name, value), expected
        self.kind, *rest = self.text.split(":")
        self.values = [part for part in rest if "=" not in part]
        self._options: dict[str, str] = {}
        for number, part in enumerate(rest):
            key, equals, text = part.partition("=")
            if not equals:
                if self._options or not key:
                    raise self.refusal(f"{short(part)} stands behind {rest[number - 1]}" if key else "a part is empty")
            elif key in self._options:
                raise self.refusal(f"{key} is given twice")
            else:
                self._options[key] = text

    def refusal(self, fault: str = "") -> ValueError:
        """The error that says what is wrong with the value."""
        return ValueError(f"{self.name} is {short(self.text)}{': ' + fault if fault else ''}; expected {self.expected}")

    def read(self, **checks: Callable[[str, Any], Any]) -> dict[str, Any]:
        """The options, each checked by the function of its name.

        The function gets the name and the value: a number, or text if it is no number.

        Raises:
            ValueError: an unknown option, or a bad value.
        """
        result = {}
        for key, text in self._options.items():
            if key not in checks:
                raise self.refusal(unknown(f"option of {self.kind}", key, checks))
            result[key] = self.checked(key, text, checks[key])
        return result

    def checked(self, key: str, text: str, check: Callable[[str, Any], Any]) -> Any:
        """One value, by its check."""
        try:
            return check(key, as_number(text))
        except ValueError as error:
            raise ValueError(f"{self.name} is {short(self.text)}: {error}") from None


def as_number(text: str) -> Any:
    """The integer or float that a text stands for; the text itself if it is no number.

    Example:
        >>> as_number("1e3"), as_number("7"), as_number("3+7")
        (1000, 7, '3+7')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    try:
        return int(text)
    except ValueError:
        return int(number) if number.is_integer() and abs(number) <= 2**53 else number
