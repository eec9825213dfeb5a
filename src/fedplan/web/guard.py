"""Guard: who may request what; everything else gets a 4xx with a reason, as JSON.

A page of another site must not reach a server on this machine. A foreign Host (DNS rebinding), a
foreign Origin and a foreign content type are refused; the token guards what is open to a network.
"""

import hmac
import re
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "fedplan_token"
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
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
    """Stands before the app; `token` is required if the server is open to a network."""

    def __init__(self, app: ASGIApp, *, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on; every answer has the headers that keep a page to itself."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        request = Request(scope)
        answer = self._refusal(request) or self._admission(request) or self._app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        method, headers = request.method, request.headers
        host = headers.get("host", "")
        if self._token is None and not _LOOPBACK.fullmatch(host):
            return _refused(421, f"this server is for 127.0.0.1 and localhost, not {host[:80]!r}.")
        if method not in (*_READS, *_WRITES):
            return _refused(405, f"{method[:20]} is not a way to ask. Use GET or POST.")
        if len(request.scope.get("query_string", b"")) > _LONGEST_QUERY:
            return _refused(414, "the address is too long.")
        site = headers.get("sec-fetch-site", "same-origin")
        opens_page = method in _READS and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("same-origin", "none") and not (
            opens_page and request.scope["path"] == "/"
        ):
            reason = f"a request from another site is refused (Sec-Fetch-Site: {site})."
            return _refused(403, reason)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refused(403, f"a request from {origin[:80]!r} is refused: it is another site.")
        return None

    def _admission(self, request: Request) -> Response | None:
        """None if the cookie is right; the answer that sets it if the address has the token."""
        token = self._token
        if token is None or _is_same(request.cookies.get(COOKIE, ""), token):
            return None
        if request.scope["path"] == "/" and _is_same(request.query_params.get("token", ""), token):
            response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return response
        reason = "a token is needed. Open the address that `fedplan serve` has printed."
        return _refused(401, reason)


def _refused(status: int, reason: str) -> Response:
    return failure(status, "Refused", reason)


def _is_same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
