"""A real server of PostgreSQL for tests and benchmarks, in a folder of its own, on a port of this machine alone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PASSWORD = "s3cret-in-no-message"


def programs() -> Path | None:
    """The folder of initdb and postgres; None if they are not installed."""
    there = shutil.which("initdb")
    folders = [Path(there).resolve().parent] if there else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -int(folder.parent.name))
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class Server:
    """A server with the user ``judge``, who has a password.

    Args:
        folder: where its data are; PostgreSQL refuses to run as root, so root gives the folder to another user.
        settings: further ones.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        found = programs()
        assert found is not None
        self._programs, self._folder, self._process = found, folder, None
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            import pwd

            name = next(name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()})
            self._user = {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}
            shutil.chown(folder, name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = folder / "words"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        subprocess.run(
            [found / "initdb", "-D", folder / "data", "-U", "judge", "-A", "scram-sha-256", "--pwfile", words, "-E", "UTF8",
             "--no-sync", "--no-locale"],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._user,
        )  # fmt: skip
        self._settings = {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": "", "log_min_messages": "panic",
            "log_min_error_statement": "panic", "max_connections": "60", "shared_buffers": "32MB", **settings,
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        words = [f"-c{name}={value}" for name, value in self._settings.items()]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._folder / "data", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **self._user,
        )  # fmt: skip
        import psycopg

        for _ in range(600):
            try:
                psycopg.connect(self.address("postgres", schema=""), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("the server does not answer")

    def address(self, database: str = "postgres", schema: str = "clickgym", password: str = PASSWORD) -> str:
        """For `Ranker`, with the password."""
        words = f"?schema={schema}" if schema else ""
        return f"postgresql://judge:{password}@127.0.0.1:{self.port}/{database}{words}"

    def run(self, statement: str, values: Any = None, schema: str = "public") -> list[Any]:
        """The rows of a statement."""
        import psycopg

        with psycopg.connect(self.address(schema=""), autocommit=True) as connection:
            connection.execute(f"SET search_path = {schema}")
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """End the server as a crash of the machine would: it has no time for anything."""
        assert self._process is not None
        children = self.run("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        os.kill(self._process.pid, signal.SIGKILL)
        for (pid,) in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        time.sleep(0.2)

    def stop(self) -> None:
        """End the server for good."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)


@contextmanager
def serving(**settings: str) -> Iterator[Server]:
    """A server that ends with the context, and its folder, too."""
    with tempfile.TemporaryDirectory(prefix="clickgym-postgres-") as name:
        server = Server(Path(name), **settings)
        try:
            yield server
        finally:
            server.stop()
