"""`clickgym.Ranker` behind HTTP: lists, clicks and ends of sessions as JSON, and the report as a page.

    pip install 'clickgym[service]'
    python examples/service.py --store ranker.db --positions 5
    curl localhost:8000/rank -d '{"query": "red shoes", "candidates": ["a", "b", "c", "d", "e", "f"]}'
    curl localhost:8000/click -d '{"impression": "AAAAAAAB...", "item": "c"}'
    curl localhost:8000/close -d '{"impression": "AAAAAAAB...", "seen": 3}'

Each may be sent again after an answer that was lost; a list that was asked for twice is two impressions. One process serves a
store. Whoever may click may teach the agents: put what you know of users and bots before it.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from clickgym import Ranker


def application(ranker: Ranker) -> Starlette:
    """The routes; what a call refuses is an answer of status 400, a full disk one of 503."""

    async def body(request: Request) -> dict[str, Any]:
        content = await request.json()
        if not isinstance(content, dict):
            raise ValueError(f"the body is {content!r}; expected a JSON object")
        return content

    async def rank(request: Request) -> Response:
        shown = await run_in_threadpool(ranker.rank, **await body(request))
        return JSONResponse({"impression": shown.id, "items": shown.items})

    async def click(request: Request) -> Response:
        return JSONResponse({"new": await run_in_threadpool(ranker.click, **await body(request))})

    async def close(request: Request) -> Response:
        return JSONResponse({"new": await run_in_threadpool(ranker.close, **await body(request))})

    async def report(request: Request) -> Response:
        return HTMLResponse((await run_in_threadpool(ranker.report)).to_html())

    async def refused(request: Request, error: Exception) -> Response:
        status = 503 if isinstance(error, OSError) else 400
        return JSONResponse({"error": str(error)}, status)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        ranker.shut_down()

    routes = [Route(f"/{call.__name__}", call, methods=["POST"]) for call in (rank, click, close)]
    errors: Any = dict.fromkeys((ValueError, TypeError, OSError), refused)
    return Starlette(routes=[*routes, Route("/report", report)], exception_handlers=errors, lifespan=lifespan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="the file in which all is kept")
    parser.add_argument("--positions", type=int, required=True, help="how many items a list shows")
    parser.add_argument("--agent", default="CascadeTS", help="who ranks, as for clickgym run (default CascadeTS)")
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds until a session counts as over (default 1800)")
    parser.add_argument("--durable", choices=("kill", "power"), default="kill", help="what an answered call survives")
    parser.add_argument("--port", type=int, default=8000, help="on which this machine is asked (default 8000)")
    words = parser.parse_args()
    ranker = Ranker(words.agent, n_positions=words.positions, store=words.store, patience=words.patience, durable=words.durable)
    uvicorn.run(application(ranker), port=words.port, log_level="warning")


if __name__ == "__main__":
    main()
