"""The documentation page of an id, made from the docstring of its click model: one template for all."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np

from ...core.docstrings import sections
from ...envs.registration import CONTEXTUAL, ENVIRONMENTS, MEMORY, Environment
from ...runner.describe import arguments

__all__ = ["page"]


def page(env_id: str) -> str:
    """The page of a registered id, in Markdown, under Gymnasium's headings.

    Args:
        env_id: a key of `ENVIRONMENTS`, `CONTEXTUAL` or `MEMORY`.
    """
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY)[env_id]
    form, kind = environment.form, environment.kind
    model = environment.click_model
    about = sections(model.__doc__ or "")
    rows = [(f"`{name}`", default, _in_markdown(text).replace("|", r"\|")) for name, default, text in arguments(env_id)]
    lines_of_table = [f"| {' | '.join(row)} |" for row in [("Parameter", "Default", "Description"), *rows]]
    table = "\n".join([lines_of_table[0], "|---|---|---|", *lines_of_table[1:]])
    references = about["Source"]
    if form:
        references = (
            f"{sections(environment.users.__doc__ or '')['Source']}\nThe click model itself: see `{env_id.removeprefix(form)}`."
        )
    return (
        _PAGE.format(
            description=_in_markdown(_DESCRIPTIONS[kind].format(title=model.title, about=about[""])),
            actions=_CANDIDATES if form == "Contextual" else _ITEMS,
            observations=_OBSERVATIONS.get(kind, _CLICKS),
            rewards=_EARNED
            if kind == "Memory"
            else _REWARDS.format(
                rewards=", ".join(f"`{reward}`" for reward in model.rewards), default_reward=environment.default_reward
            ),
            state=_STATES[kind],
            end=_ENDS if kind == "Memory" else _ENDLESS,
            information=_LOSS if kind == "Memory" else _REGRET,
            users="The users themselves" if kind == "Memory" else "The click model itself",
            example=_example(env_id, environment),
            model_example=about["Example"],
            imports=model.__module__ if not model.__module__.startswith("clickgym.") else "clickgym.envs",
            class_name=model.__name__,
            arguments=table,
            references="\n".join(f"- {line}" for line in re.split(r"\n(?! )", references)),
        ).rstrip()
        + "\n"
    )


def _in_markdown(text: str) -> str:
    return text.replace("``", "`")


def _numbers(shape: str, n_items: int = 4, n_positions: int = 2) -> Any:
    """Small round parameters of a shape, for an example."""
    falling = {"L": [0.6, 0.4, 0.2, 0.1][:n_items], "K": [0.9, 0.5][:n_positions], "KK": [[0.9, 0.0], [0.5, 0.7]], "": 0.8}
    return falling[shape]


def _example(env_id: str, environment: Environment) -> str:
    """How the environment is made and stepped, with what it returns; from parameters, so that every model has one."""
    if environment.kind == "Memory":
        return _OF_MEMORY.format(env_id=env_id)
    model, form = environment.click_model, environment.form
    signature = inspect.signature(model).parameters
    given = {name: _numbers(shape) for name, shape in model.shapes.items() if signature[name].default is not None}
    if "n_positions" in signature:
        given["n_positions"] = 2
    described = ", ".join(f"{name}={value!r}" for name, value in given.items())
    lines = [">>> import gymnasium as gym, clickgym"]
    if form == "NonStationary":
        second = {**given, "attraction": given["attraction"][::-1]}
        lines += [f">>> before = {{'model': {model.name()!r}, **dict({described})}}"]
        lines += [f">>> after = {{**before, 'attraction': {second['attraction']!r}}}"]
        lines += [f'>>> env = gym.make("{env_id}", models=[before, after], starts=[0, 1000])']
    elif form == "Contextual":
        lines += [f">>> base = {{'model': {model.name()!r}, **dict({described})}}"]
        others = "".join(f", {name}=[0.5, 0.2, 0.3, 0.4, 0.1]" for name in model.item_parameters()[1:])
        lines += [">>> items = [[1, 0], [0, 1], [0.5, 0.5], [0.2, 0.6], [0.7, 0.1]]"]
        lines += [f'>>> env = gym.make("{env_id}", base=base, theta=[0.9, 0.1], items=items{others})']
    else:
        lines += [f'>>> env = gym.make("{env_id}", {described})']
    lines += [">>> observation, info = env.reset(seed=0)"]
    if form == "Contextual":
        lines += ['>>> observation["features"].shape', "(4, 2)"]
    else:
        users = model(**given)
        lines += ['>>> info["optimal_ranking"]', repr(np.asarray(users.optimal_ranking(environment.default_reward)))]
    lines += [">>> observation, reward, terminated, truncated, info = env.step([1, 0])"]
    lines += ['>>> info["regret"] >= 0', "True"]
    return "\n".join(lines)


_DESCRIPTIONS = {
    "": "Rank search results for users of the **{title}**.\n\n{about}\n\nEvery step is one session with a new user; the "
    "stream of "
    "sessions never ends by itself.",
    "NonStationary": "Rank search results for users of the **{title}** with parameters that change abruptly, at given steps. "
    "Every "
    "step is one session with a new user; the stream of sessions never ends by itself. Regret is dynamic: against the best "
    "list "
    "for the users of that step. `reset` starts the clock, and with it the changes, anew. Nothing tells that the users have "
    "changed.",
    "Contextual": "Rank candidates by their features for users of the **{title}**, with other candidates in every session. A "
    "user "
    "with the features U(i) meets L of N items with the features V(j), `x = [U(i), V(j)]`, `‖x‖₂ ≤ 1`. An examined candidate "
    "attracts with the probability θ*ᵀx, where θ* is not told (`LinearModel`, as the default instance); or, in instances made "
    "from ratings or from labels of relevance (`LabelledModel`, `clickgym features`), with a probability of its own, which no "
    "θ "
    "need explain. Every step is one session; the stream of sessions never ends by itself. The agents of He et al. show the "
    "k-th "
    "best candidate at position k; for `clicks` in models where a click changes what is examined below it that may be "
    "suboptimal, and regret then stays linear.",
    "Memory": "Rank search results for users with a memory, a **{title}**.\n\n{about}\n\nEvery step is one session; what is "
    "clicked in it changes the state in which the user comes back, which is observed. The best list of a state is known "
    "exactly, and need not be the one that is clicked most.",
}
_ITEMS = "`RankedList(L, K)`: an integer array of K distinct item ids in `0..L-1`, the top of the list first."
_CANDIDATES = (
    "`RankedList(L, K)`: an integer array of K distinct candidates, the top of the list first; candidate i is the one with "
    "row i of "
    "the features last observed."
)
_CLICKS = """`MultiBinary(K)`: the clicks of the session that has just ended, by position; zeros after `reset`.

| Num | Observation | Values |
|---|---|---|
| 0 .. K-1 | whether the item at that position was clicked | 0, 1 |"""
_WITH_FEATURES = """`Dict(clicks=MultiBinary(K), features=Box(-1, 1, (L, d), float64))`

| Key | Observation | Values |
|---|---|---|
| `clicks` | whether the item at each position was clicked in the session that has just ended; zeros after `reset` | 0, 1 |
| `features` | the features x of the candidates to be ranked next, one row each | -1 to 1 |"""
_WITH_STATE = """`Dict(clicks=MultiBinary(K), state=Discrete(S))`; `FlattenObservation` makes the state one-hot.

| Key | Observation | Values |
|---|---|---|
| `clicks` | whether the item at each position was clicked in the session that has just ended; zeros after `reset` | 0, 1 |
| `state` | the state in which the user comes back; after the last session that of the session | 0 .. S-1 |
| `sessions_left` | only with `n_sessions`: the sessions of this user that are left | 0 .. n_sessions |"""
_OBSERVATIONS = {"Contextual": _WITH_FEATURES, "Memory": _WITH_STATE}
_REWARDS = """The realised reward of the session, by the kind that `reward` names (here {rewards}; by default
`{default_reward}`): `clicks`, the number of clicks; `any_click`, 1 if there was at least one; `satisfaction`, 1 if the user
left satisfied (only some models define it). With a `cutoff` only the first positions count."""
_EARNED = "What the click of the session earned, `click_rewards` of the state and the item; 0 without a click."
_ENDLESS = "Never: sessions are an endless stream. `max_episode_steps` in `gym.make` truncates it."
_ENDS = """`terminated` when the user leaves for good: after each session with probability 1/H (`mean_sessions`), or after
`n_sessions`. `reset` brings the next user."""
_REGRET = """`step` returns `expected_reward` (exact, of the list shown), `optimal_reward` and their difference `regret`;
`reset` returns `optimal_ranking` and `optimal_reward`."""
_LOSS = """`step` returns `optimal_reward`, V* of the state that the list was shown in: what the best lists earn from there to
the end of the user's life; `expected_reward`, Q*: what the list shown and the best ones after it earn; and their difference
`regret`, the exact loss of the list. The expected sum of these losses over a life is the regret of the life: what the best
lists would have earned beyond what was earned. `reset` returns `optimal_ranking` and `optimal_reward` of the first state."""
_OF_MEMORY = """>>> import gymnasium as gym, clickgym
>>> bait = [[[0, 1], [1, 0], [1, 0]], [[0, 1]] * 3]  # a click on item 0 spoils the user for good
>>> users = dict(attraction=[[0.6, 0.5], [0.1, 0.1]], transition=bait, first=[1, 0], mean_sessions=10)
>>> env = gym.make("{env_id}", n_positions=1, **users)
>>> observation, info = env.reset(seed=0)
>>> info["optimal_ranking"], round(info["optimal_reward"], 6)
(array([1]), 5.0)
>>> observation, reward, terminated, truncated, info = env.step([0])
>>> round(info["expected_reward"], 6)
2.94"""
_STATES = {
    "": "Sessions are independent of one another: there is no state but the random generator.",
    "NonStationary": "Sessions are independent of one another: there is no state but the random generator and the clock.",
    "Contextual": "The candidates of the first session are drawn at `reset`. Sessions are independent of one another.",
    "Memory": "The first state of a user is drawn from `first`.",
}
_PAGE = """## Description

{description}

## Action Space

{actions} A list with a duplicate, a number out of range, or a wrong shape or dtype raises an error that names the position.

## Observation Space

{observations}

## Rewards

{rewards}

## Starting State

{state}

## Episode End

{end}

## Information

{information} They are for measuring; an agent that reads them cheats.

## Arguments

```python
{example}

```

{users}, from Python:

```python
>>> from {imports} import {class_name}
{model_example}

```

{arguments}

## Vectorized environment

`gym.make_vec(id, num_envs=...)` builds the native vector environment: independent streams, all stepped in one compiled call,
with the same arguments. `max_episode_steps` truncates all streams together; `autoreset_mode` is `AutoresetMode.NEXT_STEP`,
or `SAME_STEP` on request.

## References

{references}

## Version History

- v0: initial version.
"""
