"""The real log."""

import pytest

from clickgym.offline import read_tidy, tables


@pytest.fixture(scope="session")
def yandex(data_folder):
    """Sessions to learn from, and sessions to be predicted."""
    path = data_folder / "yandex_sample" / "yandex_sample_tidy.csv.gz"
    if not path.is_file():
        pytest.skip(f"no real log: {path} is absent")
    return read_tidy(path, "train"), read_tidy(path, "test")


@pytest.fixture
def log_file(tmp_path):
    """Writes a file in the test's folder, of which the name and the content are given; returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def set_blocks(monkeypatch):
    """Sets how many bytes of text readers take at once: of a block, and of the pieces that it is read in."""

    def set_sizes(block, piece):
        monkeypatch.setattr(tables, "BLOCK", block)
        monkeypatch.setattr(tables, "PIECE", piece)

    return set_sizes
