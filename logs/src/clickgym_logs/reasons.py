"""Reasons why a log compares no lists, and doubts that withhold a verdict, with their words."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a log cannot compare a list with the production list.

    Attributes:
        sentence: the reason in full, for a query; ``{production}`` stands for the production list,
            and ``{other}`` for what may be compared with it.
    """

    sentence: str

    def __new__(cls, words: str, sentence: str) -> Reason:
        member = str.__new__(cls, words)
        member._value_, member.sentence = words, sentence
        return member

    NO_TIME = (
        "no exact time",
        "it has no time, too few different ones, or dates that hide the hours, and a list that was "
        "shown when users click more would look better. Export it with its times, to the second; "
        "where sessions are numbered in order, --columns time=session does. Where a column arm "
        "says which lists were drawn at random, dates are enough",
    )
    TOO_FEW = (
        "too few sessions",
        "no {other} beside {production} was shown in 100 sessions",
    )
    APART = (
        "not shown side by side",
        "hardly any block of time has five sessions, and five users where the log knows them, both "
        "of {production} and of anything else",
    )


class Doubt(StrEnum):
    """Why a list that earned more is not called better."""

    ENDED = "it is hardly shown any more"
    FEW_BLOCKS = "its gain is in few blocks of time"
    ONE_STRETCH = "its gain is in one stretch of time"
    LATELY = "the last blocks alone do not show its gain; collect more sessions or run the A/B test"
    FALLEN = "its gain has fallen: it was smaller in the last blocks than before"
    SHORT_LISTS = "its gain is not in whole lists"
    SHORTER_BLOCKS = "its gain is not there in shorter blocks of time"
