"""The real log."""

import pytest

from clickgym.offline import read_tidy


@pytest.fixture(scope="session")
def yandex(data_folder):
    """Sessions to learn from, and sessions to be predicted."""
    path = data_folder / "yandex_sample" / "yandex_sample_tidy.csv.gz"
    if not path.is_file():
        pytest.skip(f"no real log: {path} is absent")
    return read_tidy(path, "train"), read_tidy(path, "test")
