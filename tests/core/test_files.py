"""Files are written atomically, the first error is the one that is reported, and damaged files are
refused.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars
import pytest

from clickgym.core.files import (
    HOST,
    check_seal,
    draft_of,
    make_folder,
    read_arrays,
    reading,
    remove_drafts,
    sealed,
    write_whole,
)


def files_of(folder):
    return [(path.name, path.read_text()) for path in folder.iterdir()]


def test_file_is_replaced(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("before")
    write_whole(file, "after")
    assert files_of(tmp_path) == [("a.txt", "after")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_failure_leaves_the_old_file(tmp_path, monkeypatch, error):
    """No draft is left, and an error in cleaning up hides no error."""
    file = tmp_path / "a.txt"
    file.write_text("before")

    def fail(*_):
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(error):
        write_whole(file, "after")
    assert files_of(tmp_path) == [("a.txt", "before")]

    def refuse(*_, **__):
        raise OSError("the file system is read-only")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(error):
        write_whole(file, "after")


LIMITED = """
import resource, signal
from pathlib import Path
from clickgym.core.files import write_whole

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    write_whole(Path("a.bin"), bytes(4000))
except OSError as error:
    print(error, "|", *sorted(file.name for file in Path.cwd().iterdir()))
"""


def test_refusal_of_the_system(tmp_path):
    """The limit of a process is a full disk that needs no privileges."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "a.bin cannot be written: File too large |\n"


def test_file_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(
            ValueError,
            match=f"^{re.escape(str(path))} is a file, or lies below a file; expected a folder$",
        ):
            make_folder(path)


# ------------------------------------------------------------ drafts


@pytest.fixture
def dead():
    """The number of a process that there was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_drafts_of_dead_processes_are_removed(tmp_path, dead):
    gone = [
        f"a.npz.clickgym-{HOST}-{dead}.partial",
        f"cells.clickgym-{HOST}-{dead}.partial",
        f"b.clickgym-elsewhere-{dead}.partial",
    ]
    kept = [
        f"a.npz.clickgym-{HOST}-{os.getppid()}.partial",
        f"a.npz.clickgym-elsewhere-{dead}.partial",
        f"video.mp4.{dead}.partial",
        "a.partial",
    ]
    for name in (*gone, *kept):
        (tmp_path / name).write_text("half")
    (tmp_path / gone[1]).unlink()
    (tmp_path / gone[1]).mkdir()
    (tmp_path / gone[1] / "half").write_text("")
    long_ago = time.time() - 2 * 86400
    os.utime(tmp_path / gone[2], (long_ago, long_ago))
    write_whole(tmp_path / "other.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "other.txt"}
    remove_drafts(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "other.txt"}


def test_draft_of_this_process_stays(tmp_path):
    draft_of(tmp_path / "a.txt").write_text("just written")
    remove_drafts(tmp_path)
    assert draft_of(tmp_path / "a.txt").exists()


# ------------------------------------------------------------ reading


def test_flipped_bits_of_a_sealed_table(tmp_path):
    table = polars.DataFrame({"name": ["a", "b"], "value": [0.5, None]})
    content = sealed(table)
    (tmp_path / "a.parquet").write_bytes(content)
    check_seal(content)
    assert polars.read_parquet(tmp_path / "a.parquet").equals(table)
    accepted = []
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            check_seal(bytes(damaged))
        except ValueError:
            continue
        accepted.append(bit // 8)
    # Only in the name of the checksum, and in its length: then the file counts as one that has
    # none, with the same values.
    place = content.rfind(b"clickgym_sha256")
    assert set(accepted) == set(range(place, place + len(b"clickgym_sha256\x18@")))


def test_label_that_looks_like_a_checksum():
    table = polars.DataFrame({"name": ["clickgym_sha256\x18@" + "0" * 64, "@" + "0" * 64]})
    check_seal(sealed(table))


def test_table_without_a_checksum(tmp_path):
    polars.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    check_seal((tmp_path / "a.parquet").read_bytes())


def test_array_that_claims_to_be_shorter(tmp_path):
    np.savez(tmp_path / "a.npz", numbers=np.arange(80_000))
    assert read_arrays(tmp_path / "a.npz")["numbers"].tolist() == list(range(80_000))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content.replace(b"(80000,)", b"(00000,)"))
    assert len(np.load(tmp_path / "a.npz")["numbers"]) == 0  # which NumPy takes for good
    with pytest.raises(ValueError, match=r"the checksum of numbers\.npy differs"):
        read_arrays(tmp_path / "a.npz")


def test_panic_of_polars():
    words = ("a.parquet", "is damaged", "delete it")
    with (
        pytest.raises(ValueError, match=r"^a.parquet is damaged \(the first line\); delete it$"),
        reading(*words),
    ):
        raise polars.exceptions.PanicException("the first line\nof many")
    with pytest.raises(KeyboardInterrupt), reading(*words):
        raise KeyboardInterrupt
