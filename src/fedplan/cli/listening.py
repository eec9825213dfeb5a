"""`fedplan profile --listen`: the other end of other devices' exchanges."""

from __future__ import annotations

import click

from fedplan.cli.output import print_json


def listen(where: str, output_format: str, *, allow_network: bool, quiet: bool) -> None:
    """Serve until interrupted."""
    from fedplan.profiling.transfer import Address, open_listener, parse_address, serve

    address = parse_address(where, "--listen")
    with open_listener(address, allow_network=allow_network) as listener:
        bound = Address(*listener.getsockname()[:2])
        if output_format == "json":
            print_json({"success": True, "listening": str(bound)})
        else:
            click.echo(f"Listening on {bound}; Ctrl-C ends it.")
        serve(listener, lambda line: None if quiet else click.echo(line, err=True))
