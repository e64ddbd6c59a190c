"""Parts of error messages: values in short, names with suggestions, objects as calls."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def short_repr(value: object) -> str:
    """Return a value's ``repr`` for a message: on one line, without the addresses of functions, and
    shortened to at most 80 characters.
    """
    text = re.sub(" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= 80 else text[:77] + "..."


def value_error(name: str, value: object, expected: str) -> ValueError:
    """Return a ValueError whose message names an argument, its value and what was expected."""
    return ValueError(f"{name} is {short_repr(value)}; expected {expected}")


def as_call(obj: object, **arguments: object) -> str:
    """Return a ``repr`` in the form of a call: the object's class, and the arguments that are not
    None.

    Example:
        >>> as_call(range(3), n_items=3, seed=None)
        'range(n_items=3)'
    """
    call = ", ".join(
        f"{name}={short_repr(value)}" for name, value in arguments.items() if value is not None
    )
    return f"{type(obj).__name__}({call})"


def suggestions(name: object, names: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: the most similar name, if one is
    similar enough or if the unknown name consists of its initials, as ``lr`` does of
    ``learning_rate``; and the available names. If there are more than six names, only the five
    most similar names are listed. Among names that are equally similar, those with the same
    two first letters come first. Long names must be more similar, because many ids end alike.
    Without known names, the text is empty. If the unknown name is a list of names with commas, the
    text says how to separate them.
    """
    by_letters = {choice.casefold(): choice for choice in names}
    if not by_letters:
        return ""
    first, comma, _ = str(name).partition(",")
    if comma and first in by_letters.values():
        return "; put a space between names, not a comma"
    word = str(name).casefold()

    def likeness(key: str) -> tuple[float, bool]:
        return difflib.SequenceMatcher(None, key, word).ratio(), key[:2] == word[:2]

    nearest = sorted(by_letters, key=likeness, reverse=True)
    least = 0.6 if len(word) < 8 else 0.8
    alike = [key for key in nearest[:1] if likeness(key)[0] > least]
    alike += [key for key in by_letters if word == "".join(part[:1] for part in key.split("_"))]
    suggestion = f"; did you mean {by_letters[alike[0]]!r}?" if alike else ""
    others = f" and {len(by_letters) - 5} more" if len(by_letters) > 6 else ""
    listed = map(by_letters.__getitem__, nearest[:5]) if others else by_letters.values()
    return f"{suggestion} (available: {', '.join(listed)}{others})"
