"""What a paper assumes known of the users, from the environment: the only knowledge beside sizes
that agents are given.
"""

from __future__ import annotations

from typing import Any

from ..envs import CascadeMDP, ClickEnv, ContextualModel
from .labels import UnsuitedError


def fact(agent: str, key: str, source: str, env: Any) -> Any:
    """What a paper assumes known of an environment.

    Args:
        agent, key: the agent and its argument, for messages.
        source: one of those that an agent class may name in ``requires``.
        env: the core of an environment of any origin.

    Raises:
        UnsuitedError: the environment does not have it.
    """
    if not isinstance(env, ClickEnv):
        raise UnsuitedError(
            f"{agent} requires {key}, which {type(env).__name__} is no ClickEnv to ask for: "
            f"give {key}=..."
        )
    model = env.model
    if isinstance(model, CascadeMDP):
        facts = {
            "mean_sessions": model.n_sessions or model.mean_sessions,
            "click_rewards": model.click_rewards,
        }
        value, reason = facts.get(source), ", which stateful users do not have: "
    elif isinstance(model, ContextualModel):
        value, reason = _of_candidates(source, model), ", which the environment does not know: "
    else:
        has = "no production list" if source == "initial_ranking" else "none"
        value, reason = _of_items(source, env), f": the environment has {has}, so "
    if value is None:
        raise UnsuitedError(f"{agent} requires {key}{reason}give {key}=...")
    return value


def _of_candidates(source: str, model: ContextualModel) -> Any:
    """A fact of a model whose candidates change; where these matter, of candidates that are all
    alike.
    """
    if source == "browsing":
        return model.mean.browsing_weights()
    if source != "examination":
        return None
    weights = model.base.position_weights()
    return (
        model.mean.examination_probabilities(range(model.base.n_positions))
        if weights is None
        else weights
    )


def _of_items(source: str, env: Any) -> Any:
    """A fact of a model of items that stay, as it was known when the agent was built."""
    users = env.model.epochs[0]
    if source == "users":
        return users
    if source == "browsing":
        return users.browsing_weights()
    if source != "examination":
        return env.task.optimal_ranking if source == "optimal_ranking" else env.initial_ranking
    weights = users.position_weights()
    # the position bias that one would measure, on the production list
    if weights is None and env.initial_ranking is not None:
        return users.examination_probabilities(env.initial_ranking[: users.n_positions])
    return weights
