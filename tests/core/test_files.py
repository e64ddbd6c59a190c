"""Tests that files are written atomically, that the first error is the one reported, and that
damaged files are rejected.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from clickgym.core.files import write_whole


def files_of(folder):
    return [(path.name, path.read_text()) for path in folder.iterdir()]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_failure_leaves_the_old_file(tmp_path, monkeypatch, error):
    """A failed write leaves no temporary file behind."""
    file = tmp_path / "a.txt"
    file.write_text("before")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(error):
        write_whole(file, "after")
    assert files_of(tmp_path) == [("a.txt", "before")]


# ------------------------------------------------------------ writing at once


def test_threads_write_one_file(tmp_path):
    """No write fails, and a reader always finds the complete content of one of the writers."""
    file, contents = tmp_path / "a.txt", [letter * 5000 for letter in "abcd"]
    write_whole(file, contents[0])
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write_whole, file, content) for content in 25 * contents]
        while not all(future.done() for future in writing):
            assert file.read_text() in contents
    assert [future.exception() for future in writing] == 100 * [None]
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
