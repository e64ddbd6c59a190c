"""Eight queries of search advertising: their published position-based models as instances.

The parameters were fitted to the log of the KDD Cup 2012, track 2, the data of Lagrée et al. 2016, and stand in the
ranking_bandits repository; the cup's terms do not allow shipping them here. From a copy of them in JSON, as
``{"19": {"thetas": [...], "kappas": [1.0, ...]}, ...}``, with the attractions and the examination of each query::

    for instance in convert_kdd_pbm("kdd_pbm.json"):
        instance.save(f"folder/{instance.name}.json")

makes the files of ``gym.make("PBMRank-v0", instance="folder/kdd-19.json")``; so does ``examples/convert_queries.py``.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from ..core.files import read_json
from ..envs import PositionBasedModel
from ..envs.instances import Instance


def convert_kdd_pbm(source: str | PathLike[str]) -> list[Instance]:
    """Convert the published parameters of eight queries of search advertising to instances.

    Args:
        source: the JSON file.

    Returns:
        One instance per query, ``kdd-<query>``, with as many positions as it has examination probabilities.

    Raises:
        ValueError: naming the file, the query and what is wrong.
    """
    try:
        queries = dict(read_json(Path(source)))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{source} is not the file of the advertising queries: {error}") from None
    return [_convert(f"{source}, query {query}", query, parameters) for query, parameters in queries.items()]


def _convert(where: str, query: str, parameters: Any) -> Instance:
    try:
        model = PositionBasedModel(parameters["thetas"], parameters["kappas"])
    except KeyError as error:
        raise ValueError(f"{where}: no {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None
    return Instance(
        name=f"kdd-{query}",
        models={model.kind: model},
        n_positions=model.n_positions,
        description=f"search advertising query of the KDD Cup 2012, {model.n_items} advertisements (PBM)",
        origin="fitted to the log of the KDD Cup 2012, track 2; github.com/gaudel/ranking_bandits",
    )
