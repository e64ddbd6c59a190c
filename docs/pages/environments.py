"""Page of a click model: its ids and spaces, and the docstring of its class."""

from __future__ import annotations

from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, Users

IDS = ENVIRONMENTS | CONTEXTUAL | MEMORY
CLICKS = "`MultiBinary(K)`: the clicks of the session that has just ended, zeros after `reset`"
FEATURES = "`Dict(clicks=MultiBinary(K), features=Box(-1, 1, (L, d)))`, a row for each candidate"
STATE = "`Dict(clicks=MultiBinary(K), state=Discrete(S))`, the state in which the user comes back"


def models() -> dict[str, type[Users]]:
    """The click models of all ids, by the names of their pages."""
    return {environment.model: environment.click_model for environment in IDS.values()}


def page(name: str) -> str:
    """The page of a click model, in Markdown."""
    model = models()[name]
    ids = [env_id for env_id, environment in IDS.items() if environment.model == name]
    observations = [STATE if ids[0] in MEMORY else CLICKS]
    if any(env_id in CONTEXTUAL for env_id in ids):
        observations.append(f"with `Contextual`: {FEATURES}")
    rows = {
        "ids": ", ".join(f"`{env_id}`" for env_id in ids),
        "action space": "`RankedList(L, K)`: K distinct item ids, the top of the list first",
        "observation space": "; ".join(observations),
        "rewards": ", ".join(f"`{reward}`" for reward in model.rewards),
        "make": f'`gym.make("{ids[0]}")`',
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    title = f"{model.title[0].upper()}{model.title[1:]}"
    about = (
        "`gym.make` takes the parameters of the class, or `instance=`; "
        "[what all environments share](../environments.md)."
    )
    docstring = f"```{{eval-rst}}\n.. autoclass:: clickgym.envs.{model.__name__}\n```"
    return "\n\n".join([f"# {title}", f"| | |\n|---|---|\n{table}", about, docstring]) + "\n"
