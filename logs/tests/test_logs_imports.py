"""What clickgym-logs takes of the library: public names, `clickgym.core`, and little else."""

import re
from pathlib import Path

import clickgym_logs

PUBLIC = re.compile(r"clickgym(\.agents|\.envs|\.core\..*)?")
BEYOND = {
    "clickgym.agents.baselines",  # Random, whose propensities are known
    "clickgym.envs.click_chain",  # kernels of models, which their estimators share
    "clickgym.envs.contextual.interactions",
    "clickgym.envs.guests",
    "clickgym.envs.registration",
    "clickgym.runner.commands.names",
    "clickgym.runner.commands.run",
    "clickgym.runner.loop",
    "clickgym.runner.make",
}


def test_imports_are_public_but_for_a_few():
    files = Path(clickgym_logs.__file__).parent.rglob("*.py")
    imported = {
        name
        for file in files
        for name in re.findall(r"(?m)^ *from (clickgym\b\S*) import", file.read_text())
    }
    assert {name for name in imported if not PUBLIC.fullmatch(name)} == BEYOND
