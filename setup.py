"""The folders of the packages; the rest stands in pyproject.toml.

``envs`` and ``agents`` lie at the top level, and ``src/clickgym`` has links to them. A zip of the
repository has text files in their place once pip has unpacked it, and so has a clone on Windows.
"""

from pathlib import Path

from setuptools import setup

folders = {"": "src"}  # with links, an editable install is a folder on the path
for name in ("envs", "agents"):
    if not Path("src/clickgym", name).is_dir():
        folders[f"clickgym.{name}"] = name
setup(package_dir=folders)
