"""A callback for stable-baselines3 that logs regret. Imports the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from .vec_env import StableBaselinesVecEnv

REGRET, SHARE = "rollout/regret", "rollout/share_of_optimum"


class RegretCallback(BaseCallback):
    """Callback of stable-baselines3 that logs how much the training loses.

    Returns contain the luck of the clicks; regret does not, because it is computed from the click
    model. It is in the units of the users' own reward, also behind wrappers that change the reward.
    Environments may come from ``make_vec_env`` or from `as_vec_env`, also inside the wrappers of
    the library, such as ``VecNormalize``.

    Each line of the log has the mean over all sessions since the line before:

    - ``rollout/regret``: the expected reward of the best list minus that of the list shown;
    - ``rollout/share_of_optimum``: the sum of the expected rewards of the lists shown, divided by
      that of the best lists. It is left out for stateful users, whose ``optimal_reward`` is that of
      a whole stay.

    Args:
        verbose: as for ``BaseCallback``.

    Raises:
        ValueError: at the end of the training, if no ``info`` had a regret.

    Example:
        >>> from stable_baselines3 import PPO
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> from clickgym.agents import PlackettLuceActorCritic, RegretCallback
        >>> envs = make_vec_env("clickgym:PBMRank-v0", n_envs=8, seed=0)
        >>> model = PPO(PlackettLuceActorCritic, envs, n_steps=16, gamma=0.0, seed=0, device="cpu")
        >>> model = model.learn(256, RegretCallback())
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._n_sessions, self._regret, self._optimum = 0, 0.0, 0.0
        self._has_met_regret = self._is_stateful = False

    def _on_training_start(self) -> None:
        env: Any = self.training_env.get_attr("unwrapped", [0])[0]
        shows_more = len(getattr(env.observation_space, "spaces", ())) > 1  # than the clicks
        users = getattr(env, "model", None)
        self._is_stateful = getattr(users, "may_leave", False) and shows_more

    def _on_step(self) -> bool:
        regret, optimum = self._sessions()
        if not len(regret):  # for example within a list that is chosen item by item
            return True
        if REGRET not in self.logger.name_to_value:  # the logger has written a line
            self._n_sessions, self._regret, self._optimum = 0, 0.0, 0.0
        self._has_met_regret = True
        self._n_sessions += len(regret)
        self._regret += float(regret.sum())
        self._optimum += float(optimum.sum())
        self.logger.record(REGRET, self._regret / self._n_sessions)
        if self._optimum > 0 and not self._is_stateful:
            self.logger.record(SHARE, 1 - self._regret / self._optimum)
        return True

    def _sessions(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return regret and optimal reward of the sessions that the last step ended."""
        envs = self.training_env.unwrapped
        if isinstance(envs, StableBaselinesVecEnv):
            final = envs.infos.get("final_info", {})
            ended = final.get("_regret", np.zeros(envs.num_envs, np.bool_))
            others = envs.infos.get("_regret", ended) & ~ended
            rows = [(final, ended), (envs.infos, others)]
            found = [
                np.concatenate([values[key][mask] for values, mask in rows if mask.any()] or [[]])
                for key in ("regret", "optimal_reward")
            ]
        else:
            infos = [info for info in self.locals["infos"] if "regret" in info]
            found = [
                np.array([info[key] for info in infos], np.float64)
                for key in ("regret", "optimal_reward")
            ]
        return found[0], found[1]

    def _on_training_end(self) -> None:
        if not self._has_met_regret:
            raise ValueError(
                "no info had a 'regret' for RegretCallback; expected environments of clickgym"
            )
