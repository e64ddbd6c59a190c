"""Log a run for TensorBoard while it goes on: one entry at each checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ..core.checks import check_path
from ..core.event_files import quiet_writers
from ..core.files import make_folder, writing
from ..envs.wrappers.regret import Meter


def check_tensorboard(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder of a log; None if none is wanted.

    Raises:
        ImportError: one is wanted, and TensorBoard is not installed.
    """
    if folder is not None and find_spec("tensorboard") is None:
        raise ImportError('TensorBoard is not installed; install it: pip install "clickgym[tensorboard]"')
    return None if folder is None else check_path("tensorboard", folder)


@contextmanager
def logged(meter: Meter, folder: Path) -> Iterator[None]:
    """Context in which the meter's entries are written into a folder, at each checkpoint.

    Args:
        meter: of a run.
        folder: of its event file; made if need be.

    Raises:
        ValueError: there is a file in the folder's place.
        FileError: it cannot be written.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer import event_file_writer  # its class is taken when called: others, as wandb, exchange it

    def write() -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in meter.entry().items()]
        with writing(folder):
            writer.add_event(Event(wall_time=time.time(), step=meter.step, summary=Summary(value=values)))
            writer.flush()

    make_folder(folder)
    with quiet_writers():
        with writing(folder):
            writer = event_file_writer.EventFileWriter(str(folder))
        meter.on_checkpoint = write
        try:
            yield
        finally:
            meter.on_checkpoint = None
            with writing(folder):
                writer.close()
