"""What the tests of services share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def warnings_of_service() -> Iterator[list[str]]:
    """What a service has warned of."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    texts: list[str] = []
    handler, logger = Kept(), logging.getLogger("clickgym.serving")
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)
