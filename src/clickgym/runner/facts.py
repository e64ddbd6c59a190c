"""What a paper assumes known of the users, from the environment: the only knowledge beside sizes
that agents are given.
"""

from __future__ import annotations

from typing import Any

from ..envs import CascadeMDP, ClickEnv, ContextualModel


def fact(source: str, env: Any) -> Any:
    """What a paper assumes known of an environment, as it was when the agent was built; None if it
    does not have it.

    Args:
        source: one of those that an agent class may name in ``requires``.
        env: the core of an environment of any origin.
    """
    if not isinstance(env, ClickEnv):
        return None
    model: Any = env.model
    if isinstance(model, CascadeMDP):
        facts = {
            "mean_sessions": model.n_sessions or model.mean_sessions,
            "click_rewards": model.click_rewards,
        }
        return facts.get(source)
    if isinstance(model, ContextualModel):
        if source == "browsing":
            return model.mean.browsing_weights()
        if source != "examination":
            return None
        weights = model.base.position_weights()
        if weights is None:  # where candidates matter, those that are all alike
            weights = model.mean.examination_probabilities(range(model.base.n_positions))
        return weights
    users = model.epochs[0]
    if source == "users":
        return users
    if source == "browsing":
        return users.browsing_weights()
    if source == "optimal_ranking":
        return env.task.optimal_ranking
    if source == "initial_ranking":
        return env.initial_ranking
    weights = users.position_weights()
    # the position bias that one would measure, on the production list
    if weights is None and env.initial_ranking is not None:
        weights = users.examination_probabilities(env.initial_ranking[: users.n_positions])
    return weights
