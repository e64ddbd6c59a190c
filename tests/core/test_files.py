"""Files are written atomically, the first error is the one that is reported, and damaged files are
refused.
"""

from __future__ import annotations

import errno
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
    FileError,
    check_seal,
    draft_of,
    make_folder,
    read_arrays,
    reading,
    remove_drafts,
    sealed,
    write_whole,
)


def test_a_file_is_replaced_whole(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("before")

    def blocks():
        yield b"af"
        assert file.read_text() == "before"
        yield b"ter"

    write_whole(file, blocks())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "after")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path, error):
    file = tmp_path / "a.txt"
    file.write_text("before")

    def blocks():
        yield b"half"
        raise error

    with pytest.raises(error):
        write_whole(file, blocks())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "before")]


def test_an_error_in_cleaning_up_hides_no_error(tmp_path, monkeypatch):
    def blocks():
        yield b"half"
        raise ValueError("the first")

    def unlink(self, missing_ok=False):
        raise OSError("the file system is read-only")

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(ValueError, match="the first"):
        write_whole(tmp_path / "a.txt", blocks())


LIMITED = """
import resource, signal
from pathlib import Path
from clickgym.core.files import write_whole

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    write_whole(Path("a.bin"), (bytes(400) for _ in range(10)))
except OSError as error:
    print(error, "|", *sorted(file.name for file in Path.cwd().iterdir()))
"""


def test_what_the_system_refuses_is_told_with_what_is_needed(tmp_path):
    """The limit of a process is a full disk that needs no privileges."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (
        done.stdout
        == "a.bin cannot be written: the file is larger than the system allows: 4.0 kB are needed |\n"
    )


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (
            errno.ENOSPC,
            r"the disk is full: 6 B are needed, .* are free( and no file can be added)?",
        ),
        (errno.EDQUOT, "the quota of the disk is used up: 6 B are needed"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_each_refusal_has_its_words(tmp_path, monkeypatch, number, reason):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        FileError, match=f"^{re.escape(str(tmp_path / 'a.txt'))} cannot be written: {reason}$"
    ) as caught:
        write_whole(tmp_path / "a.txt", "a text")
    assert caught.value.errno == number


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(
            ValueError,
            match=f"^{re.escape(str(path))} is a file, or lies below a file; expected a folder$",
        ):
            make_folder(path)


# ---------------------------------------------------------------------------------------------------------------- drafts


@pytest.fixture
def dead():
    """The number of a process that there was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_dead_process_left_is_removed_and_nothing_else(tmp_path, dead):
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


def test_a_draft_of_this_process_is_left_alone(tmp_path):
    draft_of(tmp_path / "a.txt").write_text("just written")
    remove_drafts(tmp_path)
    assert draft_of(tmp_path / "a.txt").exists()


# --------------------------------------------------------------------------------------------------------------- reading


def test_every_flipped_bit_of_a_sealed_table_is_known(tmp_path):
    table = polars.DataFrame({"name": ["a", "b"], "value": [0.5, None]})
    content = sealed(table, note="kept")
    (tmp_path / "a.parquet").write_bytes(content)
    check_seal(content)
    assert polars.read_parquet(tmp_path / "a.parquet").equals(table)
    assert polars.read_parquet_metadata(tmp_path / "a.parquet")["note"] == "kept"
    accepted = []
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            check_seal(bytes(damaged))
        except ValueError:
            continue
        accepted.append(bit // 8)
    # Only in the name of the checksum, and in its length: then the file counts as one that has none, with the same values.
    place = content.rfind(b"clickgym_sha256")
    assert set(accepted) == set(range(place, place + len(b"clickgym_sha256\x18@")))


def test_a_label_that_looks_like_a_checksum_is_only_a_label():
    table = polars.DataFrame({"name": ["clickgym_sha256\x18@" + "0" * 64, "@" + "0" * 64]})
    check_seal(sealed(table))


def test_a_table_of_others_has_no_checksum_and_is_accepted(tmp_path):
    polars.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    check_seal((tmp_path / "a.parquet").read_bytes())


def test_an_array_that_claims_to_be_shorter_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", numbers=np.arange(80_000))
    assert read_arrays(tmp_path / "a.npz")["numbers"].tolist() == list(range(80_000))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content.replace(b"(80000,)", b"(00000,)"))
    assert len(np.load(tmp_path / "a.npz")["numbers"]) == 0  # which NumPy takes for good
    with pytest.raises(
        ValueError, match=r"an array claims the shape \(0,\), and the file holds another"
    ):
        read_arrays(tmp_path / "a.npz")


def test_a_panic_becomes_one_line():
    told = ("a.parquet", "is damaged", "delete it")
    with (
        pytest.raises(ValueError, match=r"^a.parquet is damaged \(the first line\); delete it$"),
        reading(*told),
    ):
        raise polars.exceptions.PanicException("the first line\nof many")
    with pytest.raises(KeyboardInterrupt), reading(*told):
        raise KeyboardInterrupt


# ----------------------------------------------------------------------------------------------------------------- sizes
