"""Files are whole or not there, and the first error is the one that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickgym.envs.files import write_whole


def test_a_file_is_replaced_whole(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("before")
    write_whole(file, lambda draft: (draft.write_text("after"), file.read_text() == "before" or pytest.fail("not whole")))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "after")]


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("before")

    def write(draft):
        draft.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(file, write)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "before")]


def test_an_error_in_cleaning_up_hides_no_error(tmp_path, monkeypatch):
    def write(draft):
        raise ValueError("the disk is full")

    def unlink(self, missing_ok=False):
        raise OSError("the file system is read-only")

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(ValueError, match="the disk is full"):
        write_whole(tmp_path / "a.txt", write)
