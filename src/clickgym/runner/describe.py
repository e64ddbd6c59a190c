"""Descriptions of agents, environments and metrics, from docstrings and registries: what `clickgym show` prints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.docstrings import entries, sections
from ..envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from ..envs.click_env import ClickEnv
from ..envs.contextual.model import ContextualModel, LabelledModel
from ..envs.registration import Environment
from .make import agent_class, place_of, player_of
from .metrics import DERIVED, METRICS

SIZES = ("self", "n_items", "n_positions", "n_features", "horizon", "seed")
"""What every agent is given and nobody passes."""

NEEDS = ("nothing", "a list", "examination", "features", "features and examination", "state")
"""What the published agents need beside clicks, in the order of tables."""
OF_USERS = {
    "initial_ranking": "a list",
    "optimal_ranking": "a list",
    "examination": "examination",
    "browsing": "examination",
    "mean_sessions": "state",
    "click_rewards": "state",
    "users": "the click model",
}
"""What an agent needs that must be told of the users, by the source that its class names."""
STANDS = ("change",)


ABSENT = {
    "Contextual": ("reference",),
    "Memory": ("reference", "cutoff"),
}
"""Arguments of `ClickEnv` that environments of a kind do not have."""


class TableOfWords(NamedTuple):
    """A table of texts: title, headings of the columns, and rows."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Description(NamedTuple):
    """Description of an agent, an environment or a metric.

    Attributes:
        kind: the kind of thing, such as ``"agent"``.
        name: its name.
        about: one sentence or several.
        facts: further sentences, by topic.
        tables: parameters and other tables.
    """

    kind: str
    name: str
    about: str
    facts: Mapping[str, str]
    tables: list[TableOfWords]


def needs(agent: Any) -> str:
    """The extra knowledge that an agent's class requires beside clicks; for published agents one of `NEEDS`.

    Args:
        agent: the class; the required arguments of its constructor decide.

    Example:
        >>> from clickgym.agents import BubbleRank, PBMLinUCB
        >>> needs(PBMLinUCB), needs(BubbleRank)  # which has a list of its own if it is given none
        ('features and examination', 'nothing')
    """
    player = player_of(agent)
    observed = [{"n_states": "state", "n_features": "features"}[size] for size in player.observes]
    required = [OF_USERS.get(source, source) for key, source in player.told.items() if key in player.required]
    return " and ".join(dict.fromkeys([*observed, *required])) or "nothing"


def stands(agent: Any) -> dict[str, str]:
    """Which of the difficulties in `STANDS` an agent's class copes with, and the evidence; see `clickgym.agents.Agent.stands`.

    Example:
        >>> from clickgym.agents import CascadeDUCB
        >>> stands(CascadeDUCB)
        {'change': 'nonstat-detect'}
    """
    return dict(getattr(agent, "stands", {}))


def describe_agent(name: str) -> Description:
    """Describe an agent: its users, its paper, what it needs and is given, what it copes with, and its hyper-parameters.

    Args:
        name: of a published one, or ``module:Class``.

    Raises:
        ValueError: there is no such agent.

    Example:
        >>> described = describe_agent("CascadeKLUCB")
        >>> described.facts["paper"], [row[:2] for row in described.tables[0].rows][:2]
        ('Kveton et al. 2015, Algorithm 1', [('feedback', '"last_click"'), ('c', '3.0')])
    """
    agent: Any = agent_class(name)
    text = sections(agent.__doc__ or "")
    observed = [key for key in ("horizon", "n_features") if key in inspect.signature(agent).parameters]
    facts = {
        "paper": getattr(agent, "paper", ""),
        "click models": getattr(agent, "click_models", ""),
        "needs": needs(agent),
        "is given": ", ".join([*getattr(agent, "told", {}), *observed]),
        "learns from any list": "yes" if getattr(agent, "learns_from_any_list", False) else "no",
        "robust to": "; ".join(f"{what} ({shown_by})" for what, shown_by in stands(agent).items()),
        "source": _source(agent),
        "search space": ", ".join(f"{key}={values}" for key, values in getattr(agent, "search_space", {}).items()),
        "run it": f"clickgym run ENV --agents {name} ...",
    }
    tables = [TableOfWords(f"Hyper-parameters (--agents {name}:NAME=VALUE)", _HEADINGS, _hyperparameters(agent))]
    about = re.split(r"\nSource: |\n\s*\|", text[""])[0]  # before the table of an RL algorithm, whose rows are those below
    about = _plain(f"{about} {text.get('Idea', '')}")
    return Description("agent", name, about, _filled(facts), [table for table in tables if table.rows])


def _source(agent: Any) -> str:
    """The paragraph of a docstring that names the paper in full."""
    source = re.search(r"^Source: ((?:.+\n?)+)", inspect.getdoc(agent) or "", flags=re.MULTILINE)
    return _plain(source[1]) if source else ""


def _hyperparameters(agent: Any) -> list[tuple[str, ...]]:
    words: dict[str, str] = {}
    for base in reversed(getattr(agent, "__mro__", (agent,))):
        for names, text in entries(sections(base.__dict__.get("__doc__") or "").get("Args", "")).items():
            words |= dict.fromkeys((name.lstrip("*") for name in re.split(", *", names)), _plain(text))
    own = {
        key: parameter
        for key, parameter in inspect.signature(agent).parameters.items()
        if key not in SIZES and parameter.kind is not parameter.VAR_KEYWORD
    }
    rows = [(key, _default(parameter.default), words.get(key, "")) for key, parameter in own.items()]
    settings = getattr(agent, "settings", {})
    return [*((key, _default(setting.default), setting.why) for key, setting in settings.items()), *rows]


def describe_environment(env_id: str) -> Description:
    """Describe an environment: its users, spaces, rewards, parameters and default instance.

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`, or ``module:Id``, where the module registers the id.

    Raises:
        ValueError: there is no such id, or it is not one of `clickgym.register`.

    Example:
        >>> described = describe_environment("PBMRank-v0")
        >>> described.facts["actions"], described.facts["rewards"]
        ('RankedList(n_items=10, n_positions=5)', 'clicks (default), any_click')
    """
    key = getattr(place_of(env_id).maker, "id", "")  # which imports a module first, so that it registers the id
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY).get(key)
    if environment is None:
        raise ValueError(f"{env_id} is no environment that clickgym.register made, and only these are described")
    rows = [tuple(map(_plain, row)) for row in arguments(key)]
    default = environment.default_instance
    rewards = environment.click_model.rewards
    users = environment.users if environment.form else environment.click_model
    spaces = _spaces(env_id) if default else {}
    facts = {
        **spaces,
        "rewards": ", ".join(f"{name}{' (default)' * (name == environment.default_reward)}" for name in rewards),
        "default instance": default if default and spaces else "",
        "source": _plain(sections(users.__doc__ or "").get("Source", "")),
    }
    table = TableOfWords(f"Parameters (gym.make, or {env_id}:NAME=VALUE)", _HEADINGS, rows)
    return Description("environment", env_id, environment.about, _filled(facts), [table])


def _spaces(env_id: str) -> dict[str, str]:
    try:
        env = place_of(env_id).env
    except ValueError:  # the default instance has no click model of your own
        return {}
    return {"actions": repr(env.action_space), "observations": _plain(str(env.observation_space))}


def arguments(env_id: str) -> list[tuple[str, str, str]]:
    """The arguments of ``gym.make`` for an id: names, defaults and descriptions.

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    lines = _lines_of_contextual(environment) if environment.form == "Contextual" else _args(environment.users)
    lines.pop("n_positions", None)
    default = "of the instance" if environment.form or environment.click_model.default_instance else "–"
    rows = [(name, default, text) for name, text in lines.items()]
    return [*rows, *((name, value, text) for name, (value, text) in _shared(environment).items())]


def _lines_of_contextual(environment: Environment) -> dict[str, str]:
    """The arguments of a form with candidates that change: its own, and those of its click model for each item."""
    model, theta = environment.click_model, _args(environment.users)["theta"]
    lines = _args(ContextualModel) | {"theta": theta, "attraction": f"instead of `theta`: {_args(LabelledModel)['attraction']}"}
    return lines | {name: f"of each item: {_args(model).get(name, '')}" for name in model.item_parameters()[1:]}


def _args(thing: Any) -> dict[str, str]:
    """The arguments that a docstring describes."""
    return entries(sections(thing.__doc__ or "").get("Args", ""))


def _shared(environment: Environment) -> dict[str, tuple[str, str]]:
    """The arguments that all environments have: what is shown as the default, and the description."""
    own, instance = _args(ClickEnv), environment.default_instance
    absent = {"model", "form", *ABSENT.get(environment.kind, ())}
    defaults = {"instance": f'`"{instance}"`' if instance else "–", "n_positions": "of the instance"}
    defaults["reward"] = f'`"{environment.default_reward}"`'
    for name, parameter in inspect.signature(ClickEnv).parameters.items():
        if name in own and name not in absent:
            value = parameter.default
            defaults.setdefault(name, f'`"{value}"`' if isinstance(value, str) else "0" if value == 0 else str(value))
    return {name: (default, own[name]) for name, default in defaults.items()}


def describe_metric(name: str) -> Description:
    """Describe a metric: what it measures, and where.

    Args:
        name: a key of `METRICS` or `DERIVED`.

    Example:
        >>> describe_metric("ndcg").facts["in contextual environments"]
        'no: it needs the same candidates in every session'
    """
    if name in METRICS:
        contextual = METRICS[name].contextual
        about = METRICS[name].description
        totals = "running sums over the sessions"
    else:
        contextual = True
        totals = "one value at each checkpoint"
        about = _plain(inspect.getdoc(DERIVED[name]) or "")
    facts = {
        "in the table": totals,
        "in contextual environments": "yes" if contextual else "no: it needs the same candidates in every session",
        "measure it": f"clickgym run ENV --agents AGENT --metrics {name} ...",
    }
    return Description("metric", name, about, facts, [])


_HEADINGS = ("parameter", "default", "what it is")


def _filled(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in facts.items() if text}


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "given"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _plain(text: str) -> str:
    """A docstring's paragraph without its marks, in one line."""
    return " ".join(re.sub(r"`|\*(?=\S)|(?<=\S)\*", "", text).split())
