"""When to take an agent and when not: sentences that rules make from its class, its scores and the studies of practice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import prose

from clickgym.agents import ANY_LIST, CompiledAgent, ContextualAgent, Learner, StateAgent
from clickgym.runner import PUBLISHED, learns, needs, player_of, stands
from clickgym_lab.bench.boards import Table, boards_tables
from clickgym_lab.bench.leaderboard import Place
from clickgym_lab.bench.reference import agent_of
from clickgym_lab.studies.study import number

NEAR, HALF = 0.05, 0.5
"""A score this close to the best of the board is as good; one below this share of the best is bad."""
SLOWER, MANY, FEW = 5.0, 20, 5
"""Clicks in batches that multiply the regret by so much are a reason against an agent, and so are so many percent of
random lists' regret under an attack; so few are a reason for the agent."""
MOST_LOST = 50
"""With new items all the time an agent that has more than so many percent of random lists' regret learns hardly anything."""


class Advice(NamedTuple):
    """A sentence on when to take an agent, or when not.

    Attributes:
        take: whether it is a reason for the agent.
        text: what follows "Take it if" or "Do not take it if".
        source: the evidence, in Markdown.
    """

    take: bool
    text: str
    source: str


class Case(NamedTuple):
    """The facts about an agent that the rules use.

    Attributes:
        name: of the agent.
        agent: its class.
        lines: the boards on which it stands, each with a line of it.
    """

    name: str
    agent: Any
    lines: Sequence[tuple[Table, Place]]

    @property
    def table(self) -> Table | None:
        """The board of its `place`."""
        return self._first[0]

    @property
    def place(self) -> Place | None:
        """Its line on the first board on which it stands, as published if it is there; None where it stands on none."""
        return self._first[1]

    @property
    def _first(self) -> tuple[Table, Place] | tuple[None, None]:
        published = [line for line in self.lines if line[1].agent == self.name]
        return next(iter(published or self.lines), (None, None))

    @property
    def learns(self) -> bool:
        """Whether clicks change what it shows."""
        return learns(self.agent)

    @property
    def needs_horizon(self) -> bool:
        """Whether its horizon has no default."""
        return "horizon" in player_of(self.agent).required

    @property
    def peers(self) -> list[Place]:
        """The lines of its board, without the agent that is told the best list."""
        return [place for place in self.table.places if place.agent != "Oracle"] if self.table else []

    @property
    def ranks_items(self) -> bool:
        """Whether it ranks the same items in every session, and sees nothing but their clicks."""
        return issubclass(self.agent, CompiledAgent) and not issubclass(self.agent, ContextualAgent | StateAgent)

    def lost(self, part: str, users: str = "") -> float | None:
        """Its regret in percent of random lists' with users as in a part of a study; None where it did not play."""
        return prose.share(part, self.name, users) if self.name in prose.practice(part).agents else None


Rule = Callable[[Case], Iterator[Advice]]


def case_of(name: str) -> Case:
    """Collect the facts about an agent that the rules use."""
    lines = [(table, place) for table in boards_tables() for place in table.places if agent_of(place.agent) == name]
    return Case(name, PUBLISHED[name], lines)


def advice(case: Case) -> list[Advice]:
    """The sentences of all rules about an agent; reasons to take it come first."""
    said = [each for rule in RULES for each in rule(case)]
    return sorted(said, key=lambda each: not each.take)


# ------------------------------------------------------------------------------------------------------- by its class

CLASS = "[its arguments](#arguments)"
BOARD = "[leaderboard](../leaderboard.md), [abilities](../scorecard.md#tasks)"


def by_learning(case: Case) -> Iterator[Advice]:
    """An agent that learns nothing is for comparison."""
    if not case.learns:
        yield Advice(True, "you need a baseline for a comparison", "[the algorithm](#the-algorithm)")
        text = "lists should get better with time: it learns nothing from clicks"
        yield Advice(False, text, "[the algorithm](#the-algorithm)")


def by_click_model(case: Case) -> Iterator[Advice]:
    """An agent is made for some click models."""
    models = case.agent.click_models
    if issubclass(case.agent, StateAgent):
        source = "[users with a memory](../environments.md#users-with-a-memory)"
        yield Advice(True, "your users come back, and their clicks change what they click next", source)
    elif not models.startswith("any") and case.learns:
        source = "[which click model fits your log](../from_log_to_decision.md)"
        yield Advice(True, f"your users follow a click model for which it is made: {models}", source)


def by_knowledge(case: Case) -> Iterator[Advice]:
    """An agent that needs more than clicks can be taken only where that is known."""
    if (what := needs(case.agent)) != "nothing":
        yield Advice(False, f"you do not have what it needs: {NEEDED.get(what, what)}", CLASS)


NEEDED = {
    "a list": "a list to show",
    "examination": "the probabilities with which users examine the positions",
    "features": "features of the candidates",
    "features and examination": "features of the candidates, and the probabilities with which users examine the positions",
    "judged documents": "features of the documents",
    "state": "the state of each user",
}
"""What agents need, by `needs`, in words."""


def by_horizon(case: Case) -> Iterator[Advice]:
    """An agent whose horizon has no default must be told how many sessions there will be."""
    if case.needs_horizon:
        yield Advice(False, "you cannot estimate the number of sessions: its `horizon` has no default", CLASS)


def by_candidates(case: Case) -> Iterator[Advice]:
    """An agent that refuses a mask of items cannot rank what is in stock."""
    if case.ranks_items and case.learns and not case.agent.takes_candidates():
        source = "[items out of stock](../practice.md#items-are-out-of-stock)"
        text = "some items are sometimes out of stock: it refuses `candidates`"
        yield Advice(False, text, source)


def by_log(case: Case) -> Iterator[Advice]:
    """An agent that learns from any list can begin with a log."""
    if case.ranks_items and case.learns:
        source = "[a log to begin with](../practice.md#you-have-a-log-to-begin-with)"
        if case.agent.learns_from == ANY_LIST:
            yield Advice(True, "you have a click log: it can learn from the log before its first session", source)
        else:
            yield Advice(False, "you want it to learn from a click log first: it learns from its own lists only", source)


WITHSTANDS = {
    "change": "users’ preferences may change abruptly",
    "bots": "bots may click for some time",
    "late clicks": "clicks arrive late or in batches",
}
TRIED = {"bots": ("click-farms", "bots=farm:first=1000"), "late clicks": ("late-clicks", "arrival=batch:1000")}
"""Where the loss of an agent under what it withstands is measured: a part of a study, and arguments of its environment."""


def by_what_it_stands(case: Case) -> Iterator[Advice]:
    """What an agent withstands by a study is a reason for it, unless it loses much in any case; what every agent of its kind
    withstands by its rule is none."""
    for what, shown_by in stands(case.agent).items():
        study, _, condition = shown_by.partition(", ")
        lost = case.lost(*TRIED[what]) if what in TRIED else None
        if shown_by != "its rule" and (lost is None or lost < MANY):
            text = WITHSTANDS[what] + (f" and you pass `{condition.removeprefix('with ').rstrip('=')}`" if condition else "")
            yield Advice(True, text, f"[{study}](../studies/{study}.md)")


# ------------------------------------------------------------------------------------------------------ by its scores


def by_place(case: Case) -> Iterator[Advice]:
    """The first quarter of a board is a reason for an agent, the second half one against it."""
    if case.place is None or case.table is None or not case.learns:
        return
    agents = list(dict.fromkeys(agent_of(place.agent) for place in case.peers))
    if case.name not in agents:
        return
    place = agents.index(case.name) + 1
    text = (
        f"you need all abilities of the scorecard equally: it is number {place} of the {len(agents)} agents of its board, each "
        "counted once, by its better line"
    )
    if place > 1:
        text += f"; the best is `{agents[0]}`"
    if 4 * place <= len(agents) or 2 * place > len(agents):
        yield Advice(4 * place <= len(agents), text, BOARD)


def by_ability(case: Case) -> Iterator[Advice]:
    """Abilities in which an agent is about as good as the best of its board, and those in which it is far worse."""
    if case.place is None or case.table is None or not case.learns:
        return
    good, bad, best = [], [], ""
    for ability in case.table.abilities:
        if ability not in case.place.standing.abilities:
            continue
        own, name = case.place.standing.abilities[ability], ability.replace("_", " ")
        peers = (place for place in case.peers if ability in place.standing.abilities)
        most, leader = max((place.standing.abilities[ability].value, place.agent) for place in peers)
        if own.value >= most - NEAR:
            good.append(name)
        elif own.value < HALF * most:
            bad.append(name)
            best = agent_of(leader)
    if good:
        text = f"you need {_listed(good)}: there it scores, as published, about as much as the best agent of its board"
        yield Advice(True, text, BOARD)
    if bad:
        text = f"you need {_listed(bad)}: there it scores, as published, less than half as much as the best agent of its board"
        yield Advice(False, f"{text}, `{best}`" if len(bad) == 1 else text, BOARD)


def _listed(names: list[str]) -> str:
    """
    Example:
        >>> _listed(["a"]), _listed(["a", "b", "c"])
        ('*a*', '*a*, *b* or *c*')
    """
    *first, last = (f"*{name}*" for name in names)
    return f"{', '.join(first)} or {last}" if first else last


# ----------------------------------------------------------------------------------------------------- by the studies


def by_batches(case: Case) -> Iterator[Advice]:
    """Clicks in batches of 1,000 sessions must not multiply the regret."""
    once, batches = case.lost("late-clicks"), case.lost("late-clicks", "arrival=batch:1000")
    if once and batches and case.learns and batches >= SLOWER * once:
        text = f"clicks arrive in batches: batches of 1,000 sessions multiply its regret by {number(batches / once, 2)}"
        yield Advice(False, text, "[late-clicks](../studies/late-clicks.md)")


def by_early_bots(case: Case) -> Iterator[Advice]:
    """A click farm in the first 1,000 sessions must not spoil the run."""
    lost = case.lost("click-farms", "bots=farm:first=1000")
    before = case.lost("click-farms")
    if lost and before and case.learns and lost >= MANY and lost >= before + FEW:
        text = (
            "bots may click in the first sessions: after a click farm in the first 1,000 sessions, it loses "
            f"{number(lost, 2)} % of what random lists lose, without the farm {number(before, 2)} %"
        )
        yield Advice(False, text, "[click-farms](../studies/click-farms.md)")


def by_churn(case: Case) -> Iterator[Advice]:
    """A new item every 1,000 sessions leaves some agents good and some no better than random lists."""
    lost = case.lost("churn", "churn=0.001")
    if lost is not None and case.learns and (lost <= FEW or lost >= MOST_LOST):
        text = (
            "items are often replaced: with a new item every 1,000 sessions, of which it is told, it loses "
            f"{number(lost, 2)} % of what random lists lose"
        )
        yield Advice(lost <= FEW, text, "[churn](../studies/churn.md)")


# --------------------------------------------------------------------------------------------------------- generic RL


def by_library(case: Case) -> Iterator[Advice]:
    """Generic reinforcement learning is for users whom clicks change."""
    if issubclass(case.agent, Learner):
        source = "[when reinforcement learning pays](../environments.md#users-with-a-memory)"
        yield Advice(True, "clicks change the users, so that it pays to plan ahead", source)
        yield Advice(False, "each user comes once, or comes back unchanged: bandits need fewer sessions to learn", source)


RULES: tuple[Rule, ...] = (
    by_learning, by_click_model, by_place, by_ability, by_what_it_stands, by_log, by_library, by_knowledge, by_horizon,
    by_candidates, by_batches, by_early_bots, by_churn,
)  # fmt: skip
"""The rules, in the order of their sentences."""
