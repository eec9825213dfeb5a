"""`fedplan serve`: a local page with a slider for every part of a question."""

import secrets
import socket
import sys
import threading
import webbrowser
from typing import Any
from urllib.parse import quote

import click
import uvicorn
from click.core import ParameterSource
from uvicorn.protocols.http.h11_impl import H11Protocol

from fedplan.cli.options import problem_options, store_option
from fedplan.cli.question import is_nothing_given, read_question
from fedplan.errors import FedplanError, InputError
from fedplan.store import Store
from fedplan.store.database import path_of
from fedplan.web.connections import guarded
from fedplan.web.server import make_app
from fedplan.web.shelf import Shelf

_LOOPBACK = "127.0.0.1"
_SHORTEST_TOKEN = 16


@click.command()
@problem_options
@store_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--no-open", is_flag=True, help="Open no browser.")
@click.option("--public", is_flag=True, help="Listen on every address, for anyone with the token.")
@click.option(
    "--token",
    envvar="FEDPLAN_TOKEN",
    show_envvar=True,
    help="The token of --public; by default a new one.",
)
def serve(
    store_url: str, port: int, no_open: bool, public: bool, token: str | None, **options: Any
) -> None:
    """Explore plans in a browser: what prices, limits and devices do to K, E, time and energy.

    Without a fleet it begins with the built-in example; another fleet can be drawn or uploaded on
    the page. A fleet without pilots or a bound is planned by turns. The page also shows the store's
    runs, live while they run. Only this machine can open it, unless --public; nothing is written
    and nothing leaves the machine. Ctrl-C ends it.

    \b
    Examples:
      fedplan serve
      fedplan serve --fleet fleet.csv
      fedplan serve --fleet fleet.csv --pilots pilots.csv
      fedplan serve --fleet fleet.csv --ratio 3750 --store sqlite:///runs/fedplan.db --port 9000
      fedplan serve --no-open --public
    """
    if token is not None and not public:
        raise InputError("--token goes with --public: on this machine alone none is needed.")
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise InputError(f"--token must have at least {_SHORTEST_TOKEN} characters.")
    shelf = _read_shelf(store_url, options)
    if public:
        token = token or secrets.token_urlsafe(24)
    listener = _listen("" if public else _LOOPBACK, port)
    host = socket.gethostname() if public else _LOOPBACK
    address = f"http://{host}:{listener.getsockname()[1]}/"
    _serve(shelf, listener, address, token, opens=not no_open and sys.stdout.isatty())


def _read_shelf(store_url: str, options: dict[str, Any]) -> Shelf:
    Store(store_url, readonly=True).close()  # reports a wrong address now, not on the page
    source = click.get_current_context().get_parameter_source("store_url")
    if source != ParameterSource.DEFAULT and not path_of(store_url).exists():
        click.echo(
            f"There is no {path_of(store_url)} yet: its runs are shown once it is.", err=True
        )
    if is_nothing_given(options):
        return Shelf(store_url)
    if options["fleet_file"] is None and options["pilots_file"] is not None:
        options = {**options, "example": True}  # the page asks for a fleet, or draws one
    question = read_question(options)
    return Shelf(store_url, question.devices, question.convergence)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as error:
        raise FedplanError(
            f"port {port} cannot be used ({error.strerror}). Another program may have it, perhaps "
            f"an earlier fedplan serve: end that, or take one that is free with --port 0."
        ) from error


def _serve(
    shelf: Shelf, listener: socket.socket, address: str, token: str | None, *, opens: bool
) -> None:
    app = make_app(shelf, token=token)
    config = uvicorn.Config(
        app,
        http=guarded(H11Protocol),
        ws="none",
        h11_max_incomplete_event_size=1 << 16,  # of a request's head
        log_level="warning",
        access_log=False,  # an address may hold the token
        lifespan="off",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    shown = address if token is None else f"{address}?token={quote(token, safe='')}"
    click.echo(f"fedplan is at {shown}")
    click.echo("Ctrl-C ends it.", err=True)
    sys.stdout.flush()
    if opens:
        threading.Timer(0.3, webbrowser.open, [shown]).start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt as stop:  # uvicorn hands it on once all is closed
        click.echo("Ended.", err=True)
        raise click.exceptions.Exit(0) from stop
