"""Files are written atomically, the first error is the one that is reported, and damaged files are
refused.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars
import pytest

from clickgym.core.files import (
    HOST,
    LOCK,
    FileError,
    check_seal,
    draft_of,
    is_draft,
    locked,
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
            match=f"^{re.escape(str(path))} is a file.*expected a folder",
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
    draft = draft_of(tmp_path / "a.txt")
    draft.write_text("just written")
    assert is_draft(draft)
    remove_drafts(tmp_path)
    assert draft.exists()


def test_threads_write_one_file(tmp_path):
    """No write fails, and a reader finds one of the contents as a whole."""
    file, contents = tmp_path / "a.txt", [letter * 5000 for letter in "abcd"]
    write_whole(file, contents[0])
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write_whole, file, content) for content in 25 * contents]
        while not all(future.done() for future in writing):
            assert file.read_text() in contents
    assert [future.exception() for future in writing] == 100 * [None]
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_planted_link(tmp_path, monkeypatch):
    """A link of the name of a draft is not followed."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "a1")
    (tmp_path / "victim").write_text("before")
    draft_of(tmp_path / "a.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(FileError, match=r"a\.txt cannot be written: File exists"):
        write_whole(tmp_path / "a.txt", "after")
    assert (tmp_path / "victim").read_text() == "before"
    assert not (tmp_path / "a.txt").exists()


def test_link_is_replaced(tmp_path):
    (tmp_path / "other").write_text("before")
    (tmp_path / "a.txt").symlink_to("other")
    write_whole(tmp_path / "a.txt", "after")
    assert (tmp_path / "other").read_text() == "before"
    assert (tmp_path / "a.txt").read_text() == "after"
    assert not (tmp_path / "a.txt").is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_mode_is_kept(tmp_path, mode):
    """Of a new file the umask decides."""
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "")
        (tmp_path / "known").write_text("before")
        (tmp_path / "known").chmod(mode)
        write_whole(tmp_path / "known", "after")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "known").stat().st_mode & 0o777 == mode


def test_pipe_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=r"pipe cannot be written: it is not a regular file$"):
        write_whole(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


def test_longest_name(tmp_path):
    file = tmp_path / ("é" * 127)  # 254 bytes
    write_whole(file, "text")
    assert file.read_text() == "text"


def test_content_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda _: done.append("content"))
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda *paths: (done.append("name"), replace(*paths)))
    write_whole(tmp_path / "a.txt", "text")
    assert done == ["content", "name"]


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


def test_arrays_that_claim_to_be_larger(tmp_path):
    """A header, or a compressed member, cannot take more memory than the file has bytes."""
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(10**6))
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        content = io.BytesIO()
        np.lib.format.write_array_header_1_0(content, header)
        file.writestr("zeros.npy", content.getvalue() + bytes(80))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(ValueError, match=r"^the size of zeros\.npy is not that of its array$"):
            read_arrays(tmp_path / name)


def test_panic_of_polars():
    words = ("a.parquet", "is damaged", "delete it")
    with (
        pytest.raises(ValueError, match=r"^a.parquet is damaged \(the first line\); delete it$"),
        reading(*words),
    ):
        raise polars.exceptions.PanicException("the first line\nof many")
    with pytest.raises(KeyboardInterrupt), reading(*words):
        raise KeyboardInterrupt


def test_lock_is_of_one_holder(tmp_path):
    """Also among the threads of a process, if the file is new or replaced; a lock that was left
    behind does not matter.
    """
    (tmp_path / LOCK).touch()
    holders, most, path = [], [], tmp_path / "a.txt"

    def hold(number):
        for _ in range(20):
            with locked(path):
                holders.append(1)
                most.append(len(holders))
                time.sleep(0)
                holders.pop()
                if number == 0:  # at the end, because the new file is not locked
                    write_whole(path, str(len(most)))

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert [file.name for file in tmp_path.iterdir()] in (
        ["a.txt"],
        ["a.txt", LOCK],
        [LOCK, "a.txt"],
    )


def test_lock_of_a_killed_process(tmp_path):
    code = """
import sys, time
from pathlib import Path
from clickgym.core.files import locked
with locked(Path(sys.argv[1], "a.txt")):
    print("locked", flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "locked\n"
    process.kill()
    process.wait()
    with locked(tmp_path / "a.txt"):
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()


def test_folder_that_cannot_be_locked(tmp_path):
    """What is written into it, or read, is whole nevertheless."""
    with locked(tmp_path / "missing" / "a.txt"):
        pass
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with locked(tmp_path / "a.txt"):
        assert not (tmp_path / "elsewhere").exists()
