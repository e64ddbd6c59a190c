"""Files are written atomically, the first error is the one that is reported, and damaged files are
refused.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars
import pytest

from clickgym.core.files import FileError, make_folder, reading, write_whole


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

    monkeypatch.setattr(os, "replace", fail)
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


# ------------------------------------------------------------ writing at once


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


def test_link_is_replaced(tmp_path):
    (tmp_path / "other").write_text("before")
    (tmp_path / "a.txt").symlink_to("other")
    write_whole(tmp_path / "a.txt", "after")
    assert (tmp_path / "other").read_text() == "before"
    assert (tmp_path / "a.txt").read_text() == "after"
    assert not (tmp_path / "a.txt").is_symlink()


def test_pipe_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        FileError, match=r"pipe cannot be written: it is a folder, or no regular file$"
    ):
        write_whole(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


def test_longest_name(tmp_path):
    file = tmp_path / ("é" * 127)  # 254 bytes
    write_whole(file, "text")
    assert file.read_text() == "text"


# ------------------------------------------------------------ reading


def test_panic_of_polars():
    words = ("a.parquet", "is damaged", "delete it")
    with (
        pytest.raises(ValueError, match=r"^a.parquet is damaged \(the first line\); delete it$"),
        reading(*words),
    ):
        raise polars.exceptions.PanicException("the first line\nof many")
    with pytest.raises(KeyboardInterrupt), reading(*words):
        raise KeyboardInterrupt
