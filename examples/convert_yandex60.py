"""Turn a copy of the published parameters of 60 Yandex queries into instance files.

python examples/convert_yandex60.py yandex60_clickmodels.json --out folder
clickgym run PBMRank-v0 --instance folder/yandex60-401.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from clickgym.offline import convert_yandex60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="yandex60_clickmodels.json")
    parser.add_argument("--out", type=Path, required=True, help="folder of the instance files")
    arguments = parser.parse_args()
    instances = convert_yandex60(arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
