"""Markdown pages and tables about agents, click models and packages, made from their classes."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from clickgym.agents import AGENTS, Learner
from clickgym.agents.published import FAMILIES, MADE_FOR
from clickgym.bench.result_files import read_results
from clickgym.core.text import markdown_table
from clickgym.envs import ENVIRONMENTS, UserModel
from clickgym.runner.commands.show import text_of
from clickgym.runner.reports.bibliography import papers

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^(\w[\w ]*):\n(?=    )((?:(?:    .*)?\n)*)", re.MULTILINE)
"""A heading in a docstring, and the indented text below it."""


def home(name: str) -> str:
    """Return the environment id for an agent's figure, with features if the agent uses them."""
    agent = AGENTS[name]
    if "state" in agent.observes:
        return "CascadeMDPRank-v0"
    model = agent.made_for_models[0] if agent.made_for_models else "PBM"
    learns_features = issubclass(agent, Learner) or "features" in agent.observes
    is_for_change = agent in FAMILIES["nonstationary"]
    kind = "Contextual" if learns_features else "NonStationary" if is_for_change else ""
    return f"{kind}{model}Rank-v0"


def agent_page(name: str) -> str:
    """Return an agent's page: what it is made for, its figure, docstring, studies and papers."""
    agent: Any = AGENTS[name]
    requires = ", ".join(getattr(agent, "requires", {})) or "nothing"
    files = sorted((ROOT / "examples" / "papers" / "results").glob("*.parquet"))
    studies = [file.stem for file in files if name in agents_of(file)]
    links = ", ".join(f"[{study}](../../examples/papers/results/{study}.md)" for study in studies)
    bibtex = "\n\n".join(papers(agent)) or "% a baseline"
    parts = [
        f"# {name}",
        f"Made for: {agent.click_models}. Requires, in addition to clicks: {requires}.",
        f"![Regret of {name}, of a known agent and of random lists in {home(name)}]({name}.png)",
        describe(agent, "## {}"),
        f"## Results beside the paper\n\nStudies: {links or 'none'}.",
        f"## BibTeX\n\n```bibtex\n{bibtex}\n```",
    ]
    return "\n\n".join(parts) + "\n"


@cache
def agents_of(file: Path) -> set[str]:
    """Return the names of the agents in the shipped results of an experiment."""
    return {label.partition(":")[0] for label in read_results(file)[0]["agent"].unique()}


def models() -> dict[str, type[UserModel]]:
    """Return the click models of all ids, in a mapping from the names of their pages."""
    return {environment.model: environment.click_model for environment in ENVIRONMENTS.values()}


def code_of(obj: Any) -> str:
    """Return the path of a class's module, relative to the root of the repository."""
    return "src/" + obj.__module__.replace(".", "/") + ".py"


# ------------------------------------------------------------ tables of agents


def agents_table() -> list[list[str]]:
    """Return the rows of the table in docs/agents.md."""
    rows = []
    for family, members in FAMILIES.items():
        rows.append([f"**{MADE_FOR[family]}**", "", "", ""])
        for agent in members:
            name = f"[`{agent.__name__}`](../{code_of(agent)})"
            requires = ", ".join(agent.requires) or "–"
            rows.append([name, agent.paper, agent.click_models, requires])
    return rows


def deviations(name: str) -> str:
    """Return the deviations from the paper, as ``clickgym show`` prints them."""
    heading = r"^Deviations from the paper:\n.*?(?=\n\n)"
    return re.search(heading, text_of(name), re.MULTILINE | re.DOTALL)[0]


# ------------------------------------------------------------ tables of click models


def stationary_ids() -> dict[str, Any]:
    """Return the ids of stationary environments, which have no prefix, and their click models."""
    return {env_id: users.click_model for env_id, users in ENVIRONMENTS.items() if not users.form}


def models_table() -> list[list[str]]:
    """Return the rows of the table in docs/environments.md: the id, name and source, and the
    expected clicks on random lists and on the best list, in an episode with the default instance.
    """
    rows = []
    for env_id, users in stationary_ids().items():
        clicks = ["–", "–"]
        if users.default_instance and not users.may_leave:
            model = gym.make(env_id).unwrapped.model
            lists = all_lists(model.n_items, model.n_positions)
            rewards = [model.expected_reward(ranking) for ranking in lists]
            clicks = [f"{1000 * value:,.0f}" for value in (np.mean(rewards), max(rewards))]
        link = f"[`{env_id}`](#{env_id.lower()})"
        rows.append([link, users.title, users.paper, *clicks])
    return rows


@cache
def all_lists(n_items: int, n_positions: int) -> NDArray[np.int64]:
    """Return all lists of K out of L items, ``(n, K)``."""
    return np.array([*itertools.permutations(range(n_items), n_positions)])


def model_sections() -> str:
    """Return the sections in docs/environments.md, one for each click model with a short name. The
    sections on other users are written by hand.
    """
    parts = []
    for env_id, users in stationary_ids().items():
        if users.short:
            text = inspect.cleandoc(users.__doc__ or "")
            args = textwrap.dedent(dict(SECTION.findall(text + "\n"))["Args"]).strip()
            about = text.split("\n\n")[1]
            about = "" if SECTION.match(f"{about}\n") else " ".join(about.split())
            parts += [
                f"### {env_id}",
                f"Users of [`{env_id}`](../{code_of(users)}) follow the {users.title}. "
                f"{_capital(users.behaviour)}. {about}".strip(),
                _parameter_names(args, users.shapes),
            ]
    return "\n\n".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ids_of(name: str) -> list[str]:
    """Return the environment ids of a click model, the stationary environment first."""
    return [env_id for env_id, environment in ENVIRONMENTS.items() if environment.model == name]


def example_env(name: str, **arguments: Any) -> Any:
    """Make an environment with a click model's default instance; if none, a random instance."""
    model = models()[name]
    if model.default_instance is None:
        arguments["instance"] = "uniform"
    return gym.make(ids_of(name)[0], **arguments)


def environment_page(name: str) -> str:
    """Return the page of a click model, with a picture, its spaces and its docstring."""
    model, ids = models()[name], ids_of(name)
    env = example_env(name)
    arguments = "" if model.default_instance else ", ..."
    rows = [
        ["ids", ", ".join(f"`{env_id}`" for env_id in ids)],
        ["action space", f"`{env.action_space}`"],
        ["observation space", f"`{env.observation_space}`"],
        ["rewards", ", ".join(f"`{reward}`" for reward in model.rewards)],
        ["make", f'`gym.make("{ids[0]}"{arguments})`'],
    ]
    parts = [
        f"# {model.title[0].upper()}{model.title[1:]}",
        f"![What 40 users clicked and looked at, position by position]({name}.png)",
        "*40 users and the best list: a column is a user, a row is a position. Blue was clicked, "
        "yellow was only looked at.*",
        "\n".join(markdown_table([["", f"with the instance {env.unwrapped.instance}"], *rows])),
        "[What all environments share](../environments.md#what-all-ids-share).",
        describe(model, "## {}"),
    ]
    return "\n\n".join(parts) + "\n"


def _fenced(block: re.Match[str]) -> str:
    """Return the lines below ``::`` as a fenced block."""
    return f"```text\n{textwrap.dedent(block[1]).strip()}\n```\n"


def package_page(module: str) -> str:
    """Return the page that describes a package's public names. Links to the separate pages of
    agents and click models come first.
    """
    package = importlib.import_module(module)
    pages = {model.__name__: f"environments/{name}.md" for name, model in models().items()}
    pages |= {name: f"agents/{name}.md" for name in AGENTS}
    names, sections = [], []
    for name in package.__all__:
        obj = getattr(package, name)
        if name in pages and module != "clickgym.logs":
            names.append(f"- [`{name}`](../{pages[name]})")
        elif callable(obj):
            sections.append(f"## {name}\n\n{describe(obj)}")
        elif not inspect.ismodule(obj):
            names.append(f"- `{name}`, a {type(obj).__name__}")
    about = (inspect.getdoc(package) or "").partition("\n\n")[0]
    return "\n\n".join([f"# API of {module}", about, *names, *sections]) + "\n"


def describe(obj: Any, heading: str = "**{}**") -> str:
    """Return the signature and docstring of a class or function, and the methods of a class."""

    def section(match: re.Match[str]) -> str:
        title, body = match[1], textwrap.dedent(match[2]).strip()
        if title == "Args" and hasattr(obj, "shapes"):
            body = _parameters(body, obj.shapes)
        elif title in ("Args", "Attributes", "Raises"):
            body = _bullets(body)
        elif title == "User":
            body = re.sub(r"^(?=\S)", "- ", body, flags=re.MULTILINE)
        elif title == "Algorithm":
            body = f"```text\n{algorithm(obj)}\n```"
        elif title == "Click law":
            body = re.sub(r"^::\n\n((?:    .+\n?)+)", _fenced, body, flags=re.MULTILINE)
        elif title.startswith("Example"):
            body = f"```pycon\n{body}\n```"
        return f"{heading.format(title)}\n\n{body}\n\n"

    signature = f"```python\n{obj.__name__}{_signature(obj)}\n```"
    text = inspect.cleandoc(obj.__doc__ or "") + "\n"
    parts = [signature, SECTION.sub(section, text).strip()]
    methods = vars(obj).items() if inspect.isclass(obj) else ()
    lines = [
        f"- `{name}{_signature(method)}`: {summary(method)}"
        for name, method in methods
        if inspect.isfunction(method) and method.__doc__ and not name.startswith("_")
    ]
    if lines:
        parts += [heading.format("Methods"), "\n".join(lines)]
    return "\n\n".join(parts)


def algorithm(obj: Any) -> str:
    """Return the pseudo-code of an agent. If its docstring only gives the difference from another
    class, the pseudo-code of the other class comes first.
    """
    body = dict(SECTION.findall(inspect.cleandoc(obj.__doc__ or "") + "\n"))["Algorithm"]
    name, lines = re.fullmatch(
        r"(?:that of `(\w+)`, where\n\n)?::\n\n(.*)", textwrap.dedent(body).strip(), re.DOTALL
    ).groups()
    lines = textwrap.dedent(lines)
    if name is None:
        return lines
    other = next(base for base in obj.__mro__ if base.__name__ == name)
    return f"{algorithm(other)}\nwhere\n{textwrap.indent(lines, 4 * ' ')}"


def _bullets(args: str) -> str:
    """Return the lines ``name: meaning`` in a docstring as a bulleted list."""
    return re.sub(r"^(\S.*?): ", r"- `\1`: ", args, flags=re.MULTILINE)


def _parameters(args: str, shapes: dict[str, str]) -> str:
    """Return a table with the name, type and meaning of each parameter of a click model."""
    rows = [["parameter", "type", "meaning"]]
    for name, meaning in re.findall(r"^([\w*, ]+): (.*(?:\n +.*)*)", args, flags=re.MULTILINE):
        shape = shapes.get(name)
        kind = f"array ({', '.join(shape)})" if shape else "number"
        rows.append([f"`{name}`", kind, re.sub(r"^``\(.*?\)`` |\|", "", " ".join(meaning.split()))])
    return "\n".join(markdown_table(rows))


def _parameter_names(args: str, shapes: dict[str, str]) -> str:
    """Return a sentence that lists a click model's parameters, with the shapes of arrays."""
    names = []
    for name in re.findall(r"^(\w+): ", args, flags=re.MULTILINE):
        shape = ", ".join(shapes.get(name, ""))
        names.append(f"`{name}`" + (f" ({shape})" if shape else ""))
    return f"Parameters: {', '.join(names)}."


def _signature(obj: Any) -> str:
    if inspect.isclass(obj) and issubclass(obj, Exception):
        return ""
    parameters = inspect.signature(obj).parameters.values()
    plain = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain))


def summary(obj: Any) -> str:
    """Return the first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(obj) or "").partition("\n\n")[0].split())
