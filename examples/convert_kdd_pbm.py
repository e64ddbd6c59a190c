"""Turn a copy of the published position-based models of eight advertising queries into instance files.

python examples/convert_kdd_pbm.py kdd_pbm.json --out folder
clickgym run PBMRank-v0 --instance folder/kdd-19.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from clickgym.offline import convert_kdd_pbm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="kdd_pbm.json")
    parser.add_argument("--out", type=Path, required=True, help="folder of the instance files")
    arguments = parser.parse_args()
    instances = convert_kdd_pbm(arguments.source)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    print(f"{len(instances)} queries -> {arguments.out}")


if __name__ == "__main__":
    main()
