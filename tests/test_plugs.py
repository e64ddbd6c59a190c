"""Commands of other packages: found without loading them, never in the place of ours, and harmless
where they are broken.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from clickgym.command_line import COMMANDS, main

MODULE = """
from pathlib import Path
Path("loaded").touch()
def greet():
    '''Say hello,
    loudly.

    Twice.
    '''
    print("hello")
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Installs a package that adds commands."""

    def install(name, module=MODULE, **commands):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{command} = {place}" for command, place in commands.items()]
        (info / "entry_points.txt").write_text("\n".join(["[clickgym.commands]", *lines, ""]))
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "commands.py").write_text(module)

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return install


def test_command_of_another_package(packages, tmp_path, capsys):
    """It is called, and named without being loaded."""
    packages("greetings", greet="greetings.commands:greet")
    assert main(["--help"]) == 0
    assert "Say hello, loudly.\n" in capsys.readouterr().out
    assert not (tmp_path / "loaded").exists()
    assert main(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert (tmp_path / "loaded").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_with_a_name_of_ours(packages, name, capsys):
    """No other package takes the place of our command."""
    packages("impostor", **{name: "impostor.commands:greet"})
    assert main([name, "--help"]) == 0
    assert "Say hello" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "module"),
    [
        ("nowhere:greet", MODULE),
        ("broken.commands:nothing", MODULE),
        ("broken.commands:greet", "def greet("),
        ("broken.commands:greet", "def greet(): pass\n1 / 0"),
    ],
)
def test_broken_command(packages, capsys, place, module):
    """It costs one line, and the other commands work."""
    packages("broken", module, greet=place)
    assert main(["--help"]) == 0
    assert "A command of broken." in capsys.readouterr().out
    assert main(["greet"]) == 2
    assert capsys.readouterr().err.startswith(
        "clickgym: the command 'greet' of broken cannot be loaded: "
    )
    assert main(["list"]) == 0


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("ValueError('bad\\ninput')", 2, ["bad input"]),
        ("MemoryError()", 1, ["memory"]),
    ],
)
def test_bad_input_ends_in_a_line(packages, capsys, error, code, words):
    packages("failing", f"def greet():\n    raise {error}\n", greet="failing.commands:greet")
    assert main(["greet"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert all(word in line for word in words)


def test_modules_of_other_distributions():
    """The library loads none."""
    code = "import sys, clickgym, clickgym.command_line"
    code += "; clickgym.command_line.main(['--help']); clickgym.run"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}; print([each for each in sys.modules if 'clickgym_l' in each])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("[]\n")
