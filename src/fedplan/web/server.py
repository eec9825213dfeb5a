"""The explorer's server: its routes and their limits.

Plans are made in threads of their own, so that the server never blocks; answers are cached. Nothing
is ever written.
"""

import asyncio
import hashlib
import io
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import PurePath
from threading import Thread
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from fedplan.csvfile import Upload
from fedplan.errors import FedplanError, InputError
from fedplan.figures.save import plotly_script
from fedplan.participation.rankings import Cache
from fedplan.strictjson import to_json
from fedplan.tables import write_rows
from fedplan.web import runs
from fedplan.web.answers import answer, doubts
from fedplan.web.guard import Guard, failure
from fedplan.web.question import Question
from fedplan.web.shelf import Shelf, cache
from fedplan.web.state import parse_json, read_state

MOST_STATE_BYTES = 64 * 1024
MOST_UPLOAD_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 10.0  # for the whole of a body
MOST_WAITING = 200  # questions at a time; more are told to come again
_KEPT_ANSWERS, _KEPT_BYTES = 256, 1 << 24  # some 60 kB each
_FRESH = {"cache-control": "no-store"}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = "index.html"
_LENGTH = re.compile(r"[0-9]{1,12}")  # of a body
# Before plotly's own first line: a browser that knows this comment compiles the whole script beside
# the page while it loads, which otherwise keeps the page itself busy for half a second.
_COMPILE_AHEAD = b"//# allFunctionsCalledOnLoad\n"


def make_app(shelf: Shelf, *, token: str | None = None) -> Guard:
    """The whole server; `token` where it is open to a network."""
    explorer = _Explorer(shelf)
    Thread(target=explorer.warm_up, daemon=True).start()
    routes = [
        Route("/", explorer.page),
        Route("/static/{name:path}", explorer.static),
        Route("/api/start", explorer.start),
        Route("/api/plan", explorer.plan, methods=["POST"]),
        Route("/api/sensitivity", explorer.sensitivity, methods=["POST"]),
        Route("/api/upload/{kind}", explorer.upload, methods=["POST"]),
        Route("/api/fleet.csv", explorer.fleet_csv, methods=["POST"]),
        Route("/api/runs", explorer.runs),
        Route("/api/curves", explorer.curves, methods=["POST"]),
    ]
    failures: Any = dict.fromkeys(
        (FedplanError, HTTPException, ClientDisconnect, Exception), _failed
    )
    return Guard(Starlette(routes=routes, exception_handlers=failures), token=token)


class _Explorer:
    """The endpoints, and what they share."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        # One question at a time: two at once would only compete for the interpreter. What takes
        # long, or waits for the disk, does not hold up the rest.
        self._quick, self._slow = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._waiting = 0
        self._answers: Cache[bytes] = cache(_KEPT_ANSWERS, _KEPT_BYTES, len)
        self._page, self._files = _load_files()

    def warm_up(self) -> None:
        """Answer what a page asks first, so that nobody waits for libraries to load."""
        answer(read_state({"energy_weight": 0.3}, self._shelf))

    async def page(self, request: Request) -> Response:
        return _unless_known(request, self._page)

    async def static(self, request: Request) -> Response:
        # A name is looked up, never joined to a path: there is nothing to climb out of.
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404, f"there is no file {name[:80]!r}.")
        return _unless_known(request, self._files[name])

    async def start(self, _request: Request) -> Response:
        """What a page needs before it asks anything."""
        known = self._shelf.convergence
        begun = {
            "fleet": self._shelf.devices.name,
            "convergence": known.name,
            "has_pilots": known.num_pilots > 0,
            "is_measured": known.is_measured,
        }
        return _sent(_encoded({"success": True, **begun}))

    async def plan(self, request: Request) -> Response:
        """Everything the page shows for one state."""
        return _sent(await self._made(answer, request))

    async def sensitivity(self, request: Request) -> Response:
        """What the plan would lose if assumptions were wrong, and what turns would cost."""
        return _sent(await self._made(doubts, request))

    async def upload(self, request: Request) -> Response:
        """Take a fleet.csv or a pilots.csv into memory."""
        kind = request.path_params["kind"]
        if kind not in ("fleet", "pilots"):
            raise HTTPException(404, "there are uploads of a fleet and of pilots alone.")
        content = await _body(request, "text/csv", MOST_UPLOAD_BYTES)
        name = PurePath(request.query_params.get("name", "").replace("\\", "/")).name
        if not name.isprintable() or not 0 < len(name) <= 120 or name.startswith("-"):
            name = f"{kind}.csv"
        file = Upload(name, content)

        def take() -> bytes:
            if kind == "fleet":
                id_, devices = self._shelf.add_fleet(file)
                return _encoded({"success": True, "id": id_, "num_clients": len(devices.fleet)})
            id_, known = self._shelf.add_pilots(file)
            return _encoded({"success": True, "id": id_, "num_pilots": known.num_pilots})

        return _sent(await self._think(take, request))

    async def fleet_csv(self, request: Request) -> Response:
        """The fleet of a state as a file, for the command that was copied."""
        state = await _object(request)

        def text() -> bytes:
            file = io.StringIO()
            write_rows(file, read_state(state, self._shelf).fleet)
            return file.getvalue().encode()

        return Response(await self._think(text, request), media_type="text/csv", headers=_FRESH)

    async def runs(self, request: Request) -> Response:
        """Studies and runs of the store, unless nothing has changed."""
        store, experiment = self._shelf.store, request.query_params.get("experiment")

        def listed() -> bytes:
            if experiment is None:
                return _encoded(runs.listing(store))
            return _encoded(runs.runs_of(store, experiment))

        found = await self._think(listed, request)
        return _unless_known(request, _File("application/json", found, _FRESH["cache-control"]))

    async def curves(self, request: Request) -> Response:
        """The losses of some runs."""
        asked, store = await _object(request), self._shelf.store
        return _sent(await self._think(lambda: _encoded(runs.curves(store, asked)), request))

    async def _made(self, make: Callable[[Question], dict[str, Any]], request: Request) -> bytes:
        """What is made of a state; a large fleet does not hold up the quick ones."""
        state = await _object(request)
        key = (make, json.dumps(state, sort_keys=True))
        if (known := self._answers.find(key)) is not None:
            return known
        seat = self._slow if self._shelf.is_large(state) else self._quick
        async with self._turn(seat, request):
            if (known := self._answers.find(key)) is not None:  # somebody asked the same meanwhile
                return known

            def work() -> bytes:
                return _encoded({"success": True, **make(read_state(state, self._shelf))})

            return self._answers.keep(key, await asyncio.to_thread(work))

    async def _think(self, work: Callable[[], bytes], request: Request) -> bytes:
        """Do in a thread what may take long."""
        async with self._turn(self._slow, request):
            return await asyncio.to_thread(work)

    @asynccontextmanager
    async def _turn(self, seat: asyncio.Semaphore, request: Request) -> AsyncIterator[None]:
        """Wait for one's turn; raises if the client has gone."""
        if self._waiting >= MOST_WAITING:
            raise HTTPException(503, "too many questions at once. Ask again in a moment.")
        self._waiting += 1
        try:
            async with seat:
                if await request.is_disconnected():
                    raise ClientDisconnect
                yield
        finally:
            self._waiting -= 1


@dataclass(frozen=True, slots=True)
class _File:
    """A file's type and content, and how long a browser may keep it."""

    kind: str
    content: bytes
    caching: str = "public, max-age=31536000, immutable"

    @property
    def tag(self) -> str:
        """The entity tag."""
        return f'"{_hash(self.content)}"'


def _load_files() -> tuple[_File, dict[str, _File]]:
    """The page, and every other file by its path below /static/; each name holds a hash.

    Modules import each other by relative names, so all of the page's own share one folder whose
    name is the hash of them all; plotly, which changes seldom, has one of its own.
    """
    folder = files("fedplan.web") / "static"
    own = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    page = own.pop(_PAGE).decode()
    plotly = _COMPILE_AHEAD + plotly_script().read_bytes()
    release = _hash(b"".join(own[name] for name in sorted(own)))
    script = f"{_hash(plotly)}/plotly.js"
    page = page.replace("{release}", f"/static/{release}").replace("{plotly}", f"/static/{script}")
    found = {
        f"{release}/{name}": _File(_TYPES[name.rpartition(".")[2]], content)
        for name, content in own.items()
    }
    found[script] = _File(_TYPES["js"], plotly)
    return _File(_TYPES["html"], page.encode(), "no-cache"), found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _unless_known(request: Request, file: _File) -> Response:
    """A file, or 304 if the browser has it already."""
    headers = {"cache-control": file.caching, "etag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


async def _object(request: Request) -> dict[str, Any]:
    return parse_json(await _body(request, "application/json", MOST_STATE_BYTES))


async def _body(request: Request, kind: str, most: int) -> bytes:
    """The body, whole and in time, and of the type expected."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != kind:
        raise HTTPException(415, f"the content type must be {kind}, but is {given[:60]!r}.")
    too_long = HTTPException(413, f"the body must have at most {most:,} bytes.")
    length = request.headers.get("content-length", "0")
    if not _LENGTH.fullmatch(length) or int(length) > most:
        raise too_long
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body must come within {BODY_SECONDS:g} s.") from None
    return b"".join(parts)


def _encoded(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:  # something is not finite, which is rare: look for it, and write null
        return to_json(value).encode()


def _sent(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers=_FRESH)


async def _failed(_request: Request, error: Exception) -> Response:
    match error:
        case ClientDisconnect():
            return Response(status_code=499)
        case HTTPException():
            return failure(error.status_code, "Refused", error.detail)
        case InputError():
            problems = ({**asdict(one), "text": str(one)} for one in error.problems)
            return failure(422, "InputError", str(error), problems)
        case FedplanError():
            return failure(500, type(error).__name__, str(error))
    return failure(500, "Error", "something is wrong with fedplan itself; the terminal says more.")
