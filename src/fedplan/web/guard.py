"""Guard: who may ask the explorer what; everything else gets a 4xx with a reason, as JSON.

A page of another site must not reach a server on this machine. A foreign Host (DNS rebinding), a
foreign Origin and a foreign content type are refused; the token guards what is open to a network.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "fedplan_token"
_LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}
_READS, _WRITES = ("GET", "HEAD"), ("POST",)
_LONGEST_QUERY = 16_384
# Plotly sets styles by itself; scripts, data and everything else come from this server alone.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def failure(status: int, kind: str, message: str, problems: Iterable[Any] = ()) -> Response:
    """What is sent instead of an answer."""
    error = {"type": kind, "message": message, "problems": list(problems)}
    return JSONResponse({"success": False, "error": error}, status, {"cache-control": "no-store"})


class Guard:
    """Stands before the app; `token` is asked for where the server is open to a network."""

    def __init__(self, app: App, *, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on; every answer has the headers that keep a page to itself."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
        elif self._token is not None and not self._is_known(headers):
            await self._admit(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        method, host = scope["method"], headers.get("host", "")
        if self._token is None and not {host, host.rpartition(":")[0]} & _LOOPBACK:
            return _refused(421, f"this server is for 127.0.0.1 and localhost, not {host[:80]!r}.")
        if method not in (*_READS, *_WRITES):
            return _refused(405, f"{method[:20]} is not a way to ask. Use GET or POST.")
        if len(scope.get("query_string", b"")) > _LONGEST_QUERY:
            return _refused(414, "the address is too long.")
        site = headers.get("sec-fetch-site", "same-origin")
        opens_page = method in _READS and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("same-origin", "none") and not (opens_page and scope["path"] == "/"):
            return _refused(
                403, f"a request from another site is refused (Sec-Fetch-Site: {site})."
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refused(403, f"a request from {origin[:80]!r} is refused: it is another site.")
        return None

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        return self._is_token(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let in who brings the token in the address: there it becomes a cookie."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        response: Response
        if scope["path"] == "/" and self._is_token(query.get("token", [""])[0]):
            response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, self._token or "", httponly=True, samesite="strict")
        else:
            response = _refused(
                401, "a token is needed. Open the address that `fedplan serve` has printed."
            )
        await response(scope, receive, send)


def _refused(status: int, reason: str) -> Response:
    return failure(status, "Refused", reason)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
