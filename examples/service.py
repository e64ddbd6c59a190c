"""`clickgym.Ranker` behind HTTP: lists, clicks and ends of sessions as JSON, and the report as a page.

    pip install 'clickgym[service]'
    python examples/service.py --store ranker.db --positions 5
    curl localhost:8000/rank -d '{"query": "red shoes", "candidates": ["a", "b", "c", "d", "e", "f"]}'
    curl localhost:8000/click -d '{"impression": "AAAAAAAB...", "token": "3f0c...", "item": "c"}'
    curl localhost:8000/close -d '{"impression": "AAAAAAAB...", "token": "3f0c...", "seen": 3}'

Send the candidates in the order in which you show them today: a tenth of the lists are their first items, for comparison. Each
call may be sent again after an answer that was lost; a list that was asked for twice is two impressions. One process serves a
file; several may serve one store in PostgreSQL (pip install 'clickgym[service,postgres]'), on several machines, too:

    python examples/service.py --store postgresql://user@host/database --positions 5 --workers 4

Nobody can click without the token, which only the answer of /rank tells: ids of impressions may stand in logs. The key of the
tokens is in a file, beside the store or named by --key; all workers need the same. Whoever may ask for lists may teach the
agents: put what you know of users and bots before it. Bodies that are too long, nested too deeply, or too slow are refused.

For operators: /health answers 200, or 503 and one line if the store cannot be read and written; /metrics is for Prometheus;
--log json writes what the service warns of as one JSON object a line. Let no users reach these, nor /report. compose.yaml here
starts the service with PostgreSQL: docker compose -f examples/compose.yaml up
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import traceback
from asyncio import BaseTransport, TimerHandle
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import h11
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from clickgym import Ranker

MOST_BYTES, DEEPEST = 1_000_000, 3
"""Of a body; a list of features is nested three times."""
SECONDS = 10.0
"""In which a request must arrive, and after which a service that is stopped ends."""
THREADS = 8
"""Of a worker; each has a connection of its own to PostgreSQL."""
MARK = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
"""A text of JSON, or what nests."""


USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
"""What each log record has; all else are fields of its own."""


class Lines(logging.Formatter):
    """Log records as JSON, one a line, with their own fields."""

    def format(self, record: logging.LogRecord) -> str:
        words = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        words |= {name: value for name, value in vars(record).items() if name not in USUAL}
        if record.exc_info:
            words["error"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(words, default=str)


class Impatient(H11Protocol):
    """Closes connections whose request is not complete in time, however slowly its bytes come."""

    deadline: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.deadline = self.loop.call_later(SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(SECONDS, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self.deadline.cancel()
            self.deadline = None


def key_of(file: Path) -> bytes:
    """The key of the tokens, which is made once for a store."""
    if not file.exists():
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):  # of several that begin at once, all take that of the first
            os.link(draft, file)
        draft.unlink()
    return file.read_bytes()


def application(ranker: Ranker, key: bytes) -> Starlette:
    """The routes; what a call refuses is an answer of status 400, a full disk one of 503."""

    def token_of(impression: object) -> str:
        return hmac.new(key, str(impression).encode(errors="replace"), hashlib.sha256).hexdigest()[:32]

    async def body(request: Request) -> dict[str, Any]:
        content, depth = bytearray(), 0
        async for part in request.stream():
            content += part
            if len(content) > MOST_BYTES:
                raise HTTPException(413, f"the body is longer than {MOST_BYTES:,} bytes", {"connection": "close"})
        for mark in MARK.finditer(content):
            depth += (mark[0] in b"[{") - (mark[0] in b"]}")
            if depth > DEEPEST:
                raise HTTPException(400, f"the body is nested more than {DEEPEST} times")
        arguments = json.loads(content)
        if not isinstance(arguments, dict):
            raise ValueError(f"the body is {arguments!r:.100}; expected a JSON object")
        return arguments

    async def of_user(request: Request) -> dict[str, Any]:
        """The arguments of a call about an impression, if its token is right."""
        arguments = await body(request)
        token = str(arguments.pop("token", "")).encode(errors="replace")
        if not hmac.compare_digest(token, token_of(arguments.get("impression")).encode()):
            raise HTTPException(403, "the token is not that of the impression, as /rank returned it")
        return arguments

    async def rank(request: Request) -> Response:
        shown = await run_in_threadpool(ranker.rank, **await body(request))
        return JSONResponse({"impression": shown.id, "token": token_of(shown.id), "items": shown.items})

    async def click(request: Request) -> Response:
        return JSONResponse({"new": await run_in_threadpool(ranker.click, **await of_user(request))})

    async def close(request: Request) -> Response:
        return JSONResponse({"new": await run_in_threadpool(ranker.close, **await of_user(request))})

    async def report(request: Request) -> Response:
        return HTMLResponse((await run_in_threadpool(ranker.report)).to_html())

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(await run_in_threadpool(ranker.metrics), media_type="text/plain; version=0.0.4")

    async def health(request: Request) -> Response:
        try:
            await run_in_threadpool(ranker.check)
        except (OSError, ValueError) as error:
            return PlainTextResponse(f"{error}\n", 503)
        return PlainTextResponse("ok\n")

    async def refused(request: Request, error: Any) -> Response:
        if isinstance(error, HTTPException):
            return JSONResponse({"error": error.detail}, error.status_code, error.headers)
        return JSONResponse({"error": str(error)}, 503 if isinstance(error, OSError) else 400)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        ranker.shut_down(timeout=SECONDS)

    routes = [Route(f"/{call.__name__}", call, methods=["POST"]) for call in (rank, click, close)]
    errors: Any = dict.fromkeys((HTTPException, ValueError, TypeError, OSError), refused)
    routes += [Route(f"/{page.__name__}", page) for page in (report, metrics, health)]
    return Starlette(routes=routes, exception_handlers=errors, lifespan=lifespan)


def arguments() -> argparse.Namespace:
    """What the command line says, in each worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="the file in which all is kept, or postgresql://user@host/database")
    parser.add_argument("--positions", type=int, required=True, help="how many items a list shows")
    parser.add_argument("--agent", default="CascadeTS", help="who ranks, as for clickgym run (default CascadeTS)")
    parser.add_argument(
        "--production-share", type=float, default=0.1,
        help="the share of lists that are the first candidates, as production shows them; 0: none (default 0.1)",
    )  # fmt: skip
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds until a session counts as over (default 1800)")
    parser.add_argument("--durable", choices=("kill", "power"), help="what an answered call survives (see docs/service.md)")
    parser.add_argument("--workers", type=int, default=1, help="processes that serve; several need PostgreSQL (default 1)")
    parser.add_argument("--key", type=Path, help="the file with the key of the tokens (default STORE.key, or service.key)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address that is listened on (default 127.0.0.1: this machine's)"
    )
    parser.add_argument("--port", type=int, default=8000, help="on which it is asked (default 8000)")
    parser.add_argument("--log", choices=("text", "json"), default="text", help="how warnings are written (default text)")
    words = parser.parse_args()
    shared = words.store.startswith("postgres")
    if words.workers > 1 and not shared:
        parser.error("--workers needs a store in PostgreSQL: one process serves a file")
    words.key = words.key or Path("service.key" if shared else f"{words.store}.key")
    return words


def made() -> Starlette:
    """The application of one worker."""
    words = arguments()
    if words.log == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(Lines())
        logging.basicConfig(handlers=[handler], force=True)

    def production(query: str | int, candidates: Sequence[str | int]) -> Sequence[str | int]:
        return candidates

    compared: Any = {"production": production, "production_share": words.production_share} if words.production_share else {}
    ranker = Ranker(
        words.agent, n_positions=words.positions, store=words.store, patience=words.patience, durable=words.durable, **compared
    )
    return application(ranker, key_of(words.key))


def main() -> None:
    words = arguments()
    key_of(words.key)  # before several workers look for it
    uvicorn.run(
        f"{Path(__file__).stem}:made", factory=True, app_dir=str(Path(__file__).parent), workers=words.workers, host=words.host,
        port=words.port, log_level="warning", log_config=None if words.log == "json" else uvicorn.config.LOGGING_CONFIG,
        http=f"{Path(__file__).stem}:Impatient" if words.workers > 1 else Impatient,
        timeout_graceful_shutdown=int(SECONDS), timeout_worker_healthcheck=60,  # a worker loads for some seconds
    )  # fmt: skip


if __name__ == "__main__":
    main()
