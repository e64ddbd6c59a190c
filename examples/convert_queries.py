"""Convert the published click models of 60 real web search queries into instance files.

python examples/convert_queries.py model_query_collection.pkl --out folder
clickgym run PBMRank-v0 --instances folder/yandex60-401.json

The file is in the folder scripts/data/60Q of https://github.com/changlicn/PyClickLambdas, where a
co-author of Zoghi et al. 2017 published six click models of each query, fitted to Yandex sessions.
The repository is under the GPL and names no terms for its data, so clickgym does not contain them.
Each click model is a pickled object, whose first argument is the attraction of the items. This
program reads the arguments, and runs no code from the file.
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.envs.instances import Instance

ARRAYS = {"ndarray": np.ndarray, "dtype": np.dtype, "_reconstruct": np.empty(0).__reduce__()[0]}
"""What NumPy needs to read an array from a pickle."""


class ClickModels(pickle.Unpickler):
    """Reader of a pickle in which each click model becomes the tuple of its arguments."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "users.users_inner":
            return lambda *arguments: arguments
        if module.startswith("numpy") and name in ARRAYS:
            return ARRAYS[name]
        raise pickle.UnpicklingError(f"expected click models and arrays, not {module}.{name}")


def converted(source: Path) -> list[Instance]:
    """Return the instances ``yandex60-<query>``, with five positions by default."""
    with source.open("rb") as file:
        kinds = ClickModels(file, encoding="latin1").load()  # Python 2 wrote it
    return [
        instance(query, {kind: queries[query]["model"] for kind, queries in kinds.items()})
        for query in sorted(kinds["CM"], key=int)
    ]


def instance(query: str, arguments: dict[str, Any]) -> Instance:
    """Return the instance of a query, from the arguments of each click model and its seed.

    The items keep the order of a logged result page, so the list 0, 1, 2, ... is the production
    list and becomes the initial ranking. In the file's UBM, the last column means "no click yet";
    in ours, column 0 does. The file's users abandon the DBN with a probability of 0 up to rounding,
    an artefact of the fit, so the DBNs become SDBNs.
    """
    attraction = {kind: values[0] for kind, values in arguments.items()}
    _, examination, _ = arguments["PBM"]
    _, termination, _ = arguments["DCM"]
    _, browsing, _ = arguments["UBM"]
    _, satisfaction, _, _ = arguments["DBN"]
    _, after_skip, after_click, after_relevant, _ = arguments["CCM"]
    n_positions = len(examination)
    models: list[ClickModel] = [
        CascadeModel(attraction["CM"], n_positions),
        PositionBasedModel(attraction["PBM"], examination),
        TrustBiasModel(attraction["PBM"], examination),  # standard trust, as in the shipped queries
        DependentClickModel(attraction["DCM"], termination),
        UserBrowsingModel(attraction["UBM"], np.roll(browsing, 1, axis=-1)),
        DynamicBayesianModel(attraction["DBN"], satisfaction, n_positions=n_positions),
        ClickChainModel(
            attraction["CCM"],
            n_positions=n_positions,
            continue_after_skip=after_skip,
            continue_after_click=after_click,
            continue_after_relevant=after_relevant,
        ),
    ]
    return Instance(
        name=f"yandex60-{query}",
        models={model.kind: model for model in models},
        n_positions=5,
        description="real search query of the PyClickLambdas collection, 10 items (all click "
        "models)",
        origin="fitted to Yandex Relevance Prediction 2011 sessions; "
        "github.com/changlicn/PyClickLambdas",
        initial_ranking=np.arange(len(attraction["CM"])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="the file model_query_collection.pkl")
    parser.add_argument("--out", type=Path, required=True, help="folder for the instance files")
    arguments = parser.parse_args()
    instances = converted(arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
