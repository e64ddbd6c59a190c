"""Fixtures for files of logs and of judged queries."""

import pytest


@pytest.fixture
def log_file(tmp_path):
    """Write a file with the given name and content in the test's folder, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
