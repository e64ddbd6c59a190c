"""Turn a copy of published click models of real queries into instance files: 60 of web search, or eight of advertising.

python examples/convert_queries.py yandex60 yandex60_clickmodels.json --out folder
python examples/convert_queries.py kdd_pbm kdd_pbm.json --out folder
clickgym run PBMRank-v0 --instance folder/yandex60-401.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from clickgym.offline import convert_kdd_pbm, convert_yandex60

CONVERTERS = {"yandex60": convert_yandex60, "kdd_pbm": convert_kdd_pbm}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=CONVERTERS, help="which models the file holds")
    parser.add_argument("source", type=Path, help="the file")
    parser.add_argument("--out", type=Path, required=True, help="folder of the instance files")
    arguments = parser.parse_args()
    instances = CONVERTERS[arguments.data](arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
