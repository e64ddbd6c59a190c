"""Files of logs and of judged queries."""

import pytest


@pytest.fixture
def log_file(tmp_path):
    """Writes a file in the test's folder, of which the name and the content are given; returns its
    path.
    """

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
