"""Sixty further real queries: their published click model parameters as instances.

The parameters were fitted by a co-author of Zoghi et al. 2017 to at least a million Yandex sessions and stand in the
PyClickLambdas repository, whose terms do not allow shipping them here. From a copy of them in JSON, as
``{"origin": ..., "shared": {"PBM_examination": ..., ...}, "queries": {"401": {"CM": [...], ...}, ...}}``::

    for instance in convert_yandex60("yandex60_clickmodels.json"):
        instance.save(f"folder/{instance.name}.json")

makes the files of ``gym.make("PBMRank-v0", instance="folder/yandex60-401.json")``; so does
``examples/convert_queries.py``.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..core.files import read_json
from ..envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from ..envs.instances import Instance


def convert_yandex60(source: str | PathLike[str]) -> list[Instance]:
    """Convert the published parameters of 60 queries to instances.

    The items keep their order, that of one logged result page, so the identity is a list that was in production: the
    initial ranking. The file's UBM puts "no click yet" into the last column; here it is column 0. The file's
    perseverance of the
    DBN, 1 but for rounding, is an artefact of the fit: the models become SDBNs.

    Args:
        source: the JSON file.

    Returns:
        One instance per query, ``yandex60-<query>``, of five positions by default.

    Raises:
        ValueError: naming the file, the query and what is wrong.
    """
    try:
        content = read_json(Path(source))
        shared, queries = dict(content["shared"]), dict(content["queries"])
        names = ("continue_after_skip", "continue_after_click", "continue_after_relevant")
        chain = dict(zip(names, shared["CCM"], strict=True)) if "CCM" in shared else {}  # not every copy of the file has it
        browsing = np.array(shared["UBM_gamma_rank_prev"], dtype=float)
        examination, termination = shared["PBM_examination"], shared["DCM_termination"]
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{source} is not the file of the 60 queries: {error}") from None
    except KeyError as error:
        raise ValueError(f"{source} is not the file of the 60 queries: it has no {error}") from None
    shared = {"examination": examination, "termination": termination, "browsing": np.roll(browsing, 1, axis=-1), "chain": chain}
    return [_convert(f"{source}, query {query}", query, parameters, shared) for query, parameters in queries.items()]


def _convert(where: str, query: str, parameters: dict[str, Any], shared: dict[str, Any]) -> Instance:
    n_positions = len(shared["examination"])
    try:
        models: list[ClickModel] = [
            CascadeModel(parameters["CM"], n_positions),
            PositionBasedModel(parameters["PBM"], shared["examination"]),
            DependentClickModel(parameters["DCM"], shared["termination"]),
            UserBrowsingModel(parameters["UBM"], shared["browsing"]),
            DynamicBayesianModel(parameters["DBN"], parameters["DBN_satisfaction"], n_positions=n_positions),
        ]
        if shared["chain"]:
            models.append(ClickChainModel(parameters["CCM"], n_positions=n_positions, **shared["chain"]))
        return Instance(
            name=f"yandex60-{query}",
            models={model.kind: model for model in models},
            n_positions=5,
            description="real search query of the PyClickLambdas collection, 10 items (all click models)",
            origin="fitted to Yandex Relevance Prediction 2011 sessions; github.com/changlicn/PyClickLambdas",
            initial_ranking=np.arange(len(parameters["CM"])),
        )
    except KeyError as error:
        raise ValueError(f"{where}: no {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None
