"""A callback for stable-baselines3 that logs regret. The module imports the library."""

from __future__ import annotations

import warnings

from stable_baselines3.common.callbacks import BaseCallback

from ...envs.env_properties import user_model_of
from ...envs.wrappers.item_by_item import Choices


class RegretCallback(BaseCallback):
    """Callback for stable-baselines3 that logs the regret of training as ``rollout/regret``: the
    expected reward of the best list minus the expected reward of the list shown, averaged over all
    sessions since the last time the log was written.

    Returns depend on the chance of individual clicks. Regret does not, because clickgym computes it
    from the click model. Regret is measured in the users' own reward, even if wrappers change the
    reward. Environments may come from ``make_vec_env`` or from `vec_env`, with or without wrappers
    from stable-baselines3, such as ``VecNormalize``.

    Warns:
        UserWarning: ``learn`` is called with fewer steps than the model requires before its first
            update; or the model's ``gamma`` is not 0, although users have no memory, or is 0,
            although they have one.

    Example:
        >>> from stable_baselines3 import PPO
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> from clickgym.agents import PlackettLuceActorCritic, RegretCallback
        >>> envs = make_vec_env("clickgym:PBMRank-v0", n_envs=8, seed=0)
        >>> model = PPO(PlackettLuceActorCritic, envs, n_steps=16, gamma=0.0, seed=0, device="cpu")
        >>> model = model.learn(256, RegretCallback())
    """

    def _on_training_start(self) -> None:
        n_steps = self.locals["total_timesteps"] - self.num_timesteps
        rollout_steps = getattr(self.model, "n_steps", 0) * self.training_env.num_envs
        if rollout_steps > n_steps:
            warnings.warn(
                f"{type(self.model).__name__} learns for the first time after n_steps * "
                f"n_envs = {rollout_steps:,} steps, and learn plays all of them, although you "
                f"asked for {n_steps:,}: pass a smaller n_steps to the model",
                stacklevel=5,
            )
        gamma = getattr(self.model, "gamma", 0.0)
        users = user_model_of(self.training_env.get_attr("unwrapped")[0])
        shows_lists = not isinstance(self.model.action_space, Choices)
        if users is None or not shows_lists:
            return
        if gamma and not users.may_leave:
            warnings.warn(
                f"gamma is {gamma}, but no list changes the rewards of later sessions, which "
                "therefore only add noise: pass gamma=0.0 to the model",
                stacklevel=5,
            )
        if gamma == 0 and users.discount < 1:
            warnings.warn(
                "gamma is 0, but users have a memory, and their later sessions depend on the list: "
                f"pass their discount, gamma={users.discount:.4g}, to the model",
                stacklevel=5,
            )

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "regret" in info:  # an unfinished list has no regret
                self.logger.record_mean("rollout/regret", info["regret"])
        return True
