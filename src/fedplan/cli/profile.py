"""`fedplan profile`: measure this device for a fleet.csv."""

from __future__ import annotations

import math
import socket
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from rich.markup import escape

from fedplan.cli.observed_fleet import show_fleet
from fedplan.cli.options import download_option, format_option, quiet_option
from fedplan.cli.output import Facts, picked, print_result, say_at_the_end
from fedplan.cli.training import compiling, fetch_data, named_study
from fedplan.errors import LARGEST, Collector
from fedplan.profiling.meters import Meter, find_meter
from fedplan.profiling.profile import Profile, profile_device, read_row, write_row
from fedplan.profiling.regression import Measured
from fedplan.profiling.timing import check_seconds
from fedplan.profiling.transfer import (
    BYTES_PER_PARAMETER,
    Address,
    open_listener,
    parse_address,
    serve,
)
from fedplan.studies.study import Study
from fedplan.studies.study_file import read_study
from fedplan.studies.task import LocalTraining, build_local_training
from fedplan.words import small

_OWN_ADDRESS = "127.0.0.1:8765"
_WITH_LISTEN = ("listen", "allow_network", "output_format", "quiet")
_WITH_FLEET_FROM = ("fleet_from", "study", "output", "output_format", "quiet")
# By option: the source of an exchange's time, and the words beside its number.
_SOURCES = {
    "server": ("measured", ""),
    "comm_time_s": ("stated", " as stated"),
    "bandwidth_mbps": ("bandwidth", " by the bandwidth"),
}


@click.command()
@click.argument("study", metavar="[STUDY]", default="demo")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--output", "-o", metavar="FILE", help="Put the device's row into this fleet.csv.")
@click.option("--device", metavar="NAME", help="Its name; by default the host's name.")
@click.option(
    "--server", metavar="HOST:PORT", help="Time exchanges with `fedplan profile --listen` there."
)
@click.option("--comm-time-s", type=float, help="Or state the seconds of an exchange.")
@click.option("--bandwidth-mbps", type=float, help="Or compute them from megabits per second.")
@click.option(
    "--meter",
    metavar="METER",
    default="auto",
    show_default=True,
    help="auto, none, rapl, ina, battery, zeus, codecarbon, csv:FILE or constant:WATTS.",
)
@click.option("--idle-watts", type=float, help="Idle power to subtract; by default measured first.")
@click.option(
    "--seconds", type=float, default=3.0, show_default=True, help="How long to measure each part."
)
@click.option(
    "--listen",
    is_flag=False,
    flag_value=_OWN_ADDRESS,
    metavar="[HOST:PORT]",
    help=f"Be the server of others' measurements [{_OWN_ADDRESS}].",
)
@click.option(
    "--fleet-from",
    metavar="URL",
    help="Measure nothing: the whole fleet, from the live runs in this store.",
)
@click.option("--allow-network", is_flag=True, help="Let --listen be reached from other machines.")
@format_option
@download_option
@quiet_option
def profile(
    study: str,
    overrides: tuple[str, ...],
    output_format: str,
    download: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure this device: seconds and joules of a local step and of a model exchange.

    A step is one SGD step of the study's client with the median number of samples, in one thread
    on this machine, by fedplan's own compiled kernels. An exchange is one download and one upload
    of the model, 4 bytes per parameter. STUDY is a study file (TOML) or a built-in study: demo,
    setup1, setup2, setup3. KEY=VALUE overrides it.

    With --fleet-from, STUDY was trained on a live federation, by default the latest one: all its
    devices, from the rounds they took part in.

    \b
    Examples:
      fedplan profile
      fedplan profile setup2 data=mnist-mini --bandwidth-mbps 20 --output fleet.csv
      fedplan profile --listen 0.0.0.0:8765 --allow-network        on the server
      fedplan profile study.toml --server 10.0.0.5:8765 -o fleet.csv   on every device
      fedplan profile --meter constant:4.5 --comm-time-s 2 --format json
      fedplan profile --fleet-from sqlite:///fedplan.db --output fleet.csv
    """
    if options["listen"] is not None:
        _refuse_others(_WITH_LISTEN, "--listen, which only serves")
        allowed = options["allow_network"]
        _listen(options["listen"], output_format, allow_network=allowed, quiet=quiet)
        return
    if options["fleet_from"] is not None:
        _refuse_others(_WITH_FLEET_FROM, "--fleet-from, which measures nothing")
        named = study if _is_given("study") else None
        show_fleet(options["fleet_from"], named, options["output"], output_format)
        return
    request = _read(*named_study(study, overrides), options)
    if download:
        fetch_data([request.study], quiet=quiet)
    _measure(request, options, output_format, quiet=quiet)


def _measure(
    request: _Request, options: dict[str, Any], output_format: str, *, quiet: bool
) -> None:
    """Measure this device, write its row where that was asked for, and print it all."""
    training = build_local_training(request.study)
    with compiling(quiet=quiet):
        training(1)
    if not quiet:
        click.echo("Measuring; let the device do nothing else ...", err=True)
    model_bytes, stated_s = training.num_parameters * BYTES_PER_PARAMETER, options["comm_time_s"]
    if options["bandwidth_mbps"] is not None:  # both ways, latency left out
        stated_s = float(2 * model_bytes * 8 / (options["bandwidth_mbps"] * 1e6))
    result = profile_device(
        training,
        model_bytes=model_bytes,
        seconds=options["seconds"],
        server=request.server,
        comm_time_s=stated_s,
        meter=request.meter,
        idle_watts=options["idle_watts"],
    )
    output, device, replaced = options["output"], request.device, False
    if output is not None:
        replaced = write_row(output, device, result.quantities())
        if output_format == "table":
            deed = "Replaced the row of" if replaced else "Added"
            say_at_the_end(f"{deed} {device} in {output}.")
    document = _as_json(request, training, result, model_bytes)
    document |= {"output": output, "replaced": replaced}
    print_result(output_format, document, _blocks(request, result, document))


def _listen(where: str, output_format: str, *, allow_network: bool, quiet: bool) -> None:
    """Be the other end of other devices' exchanges, until interrupted."""
    address = parse_address(where, "--listen")
    with open_listener(address, allow_network=allow_network) as listener:
        bound = Address(*listener.getsockname()[:2])
        document = {"success": True, "listening": str(bound)}
        print_result(output_format, document, [f"Listening on {bound}; Ctrl-C ends it."])
        serve(listener, lambda line: None if quiet else click.echo(line, err=True))


class _Request(NamedTuple):
    """What the options describe, read and checked; `source` is a key of `_SOURCES`."""

    study: Study
    device: str
    server: Address | None
    source: str | None
    meter: Meter | None
    energy_note: str


def _read(name: str, overrides: tuple[str, ...], options: dict[str, Any]) -> _Request:
    """Read and check the options; all problems are raised at once."""
    device = options["device"] if options["device"] is not None else socket.gethostname()
    output, where, idle = options["output"], options["server"], options["idle_watts"]
    collector, server = Collector(), None
    read = collector.attempt(lambda: read_study(name, overrides))
    collector.attempt(lambda: check_seconds(options["seconds"]))
    if where is not None:
        server = collector.attempt(lambda: parse_address(where, "--server"))
    sources = [source for source in _SOURCES if options[source] is not None]
    collector.add(*_exchange_problems(sources, options))
    if output is not None:
        collector.attempt(lambda: read_row(output, device))
    if options["allow_network"]:
        collector.add("--allow-network goes with --listen.")
    found = collector.attempt(lambda: find_meter(options["meter"]))
    if idle is not None and not 0 <= idle < math.inf:
        collector.add(f"`--idle-watts >= 0` must hold, but got {idle}.")
    if idle is not None and found is not None and found[0] is None:
        collector.add("--idle-watts is taken off what a meter shows, but there is no meter.")
    study, (meter, energy_note) = collector.finished(read), collector.finished(found)
    return _Request(study, device, server, (*sources, None)[0], meter, energy_note)


def _exchange_problems(sources: list[str], options: dict[str, Any]) -> Iterator[str]:
    """What is wrong with where the time of an exchange comes from: at most one place."""
    stated, bandwidth = options["comm_time_s"], options["bandwidth_mbps"]
    if len(sources) > 1:
        yield "give at most one of --server, --comm-time-s and --bandwidth-mbps."
    if not sources and options["output"] is not None:
        yield (
            "a row of a fleet needs the time of a model exchange. Give --server HOST:PORT to "
            "measure it, or --comm-time-s or --bandwidth-mbps to state it."
        )
    if stated is not None and not 0 <= stated <= LARGEST:
        yield f"--comm-time-s must be a finite number >= 0, but got {stated}."
    if bandwidth is not None and not 1e-9 <= bandwidth < math.inf:
        yield f"--bandwidth-mbps must be a finite number > 0, but got {bandwidth}."


def _is_given(name: str) -> bool:
    context = click.get_current_context()
    named = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
    return named and context.params[name] != ()  # click 8.2.0 says COMMANDLINE even of no words


def _refuse_others(allowed: Collection[str], what: str) -> None:
    """Refuse every argument and option that does not go with this one."""
    collector = Collector()
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if name not in allowed and _is_given(name):
            shown = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.metavar
            collector.add(f"{shown} does not go with {what}.")
    collector.finish()


def _as_json(
    request: _Request, training: LocalTraining, result: Profile, model_bytes: int
) -> dict[str, Any]:
    meter, steps, study = request.meter, result.steps, request.study
    return {
        "success": True,
        "device": request.device,
        "study": study.name,
        **picked(training, "client", "num_parameters"),
        "model_bytes": model_bytes,
        "step_time_s": asdict(result.step_time_s),
        "fixed_time_s": steps.fixed_time_s,
        "comm_time_s": result.comm_time_s and asdict(result.comm_time_s),
        "comm_source": request.source and _SOURCES[request.source][0],
        "step_energy_j": result.step_energy_j and asdict(result.step_energy_j),
        "comm_energy_j": result.comm_energy_j and asdict(result.comm_energy_j),
        "meter": meter
        and {
            "name": meter.name,
            "description": meter.describe(),
            "is_measurement": meter.is_measurement,
            "idle_watts": result.idle_watts,
            "training_watts": steps.window.watts,
        },
        "energy_note": request.energy_note,
        **picked(steps, "num_calls", "local_steps"),
        "num_exchanges": result.exchanges and result.exchanges.num_exchanges,
        "processor_share": steps.processor_share,
        "cautions": list(result.cautions()),
        "message": f"A step is one SGD step of {study.task.model} with a batch of "
        f"{min(study.training.batch_size, training.num_samples)}, for client {training.client} "
        f"({training.num_samples:,} samples, the median of {training.num_clients:,} clients), in "
        "one thread of this machine, by fedplan's compiled kernels; another framework may take "
        "far longer.",
    }


def _blocks(request: _Request, result: Profile, document: dict[str, Any]) -> Iterator[Facts | str]:
    size = f"{document['num_parameters']:,} parameters, {document['model_bytes']:,} bytes"
    how = _SOURCES[request.source][1] if request.source else ""
    facts = [
        ("device", escape(request.device)),
        ("study", f"{escape(request.study.name)}: {request.study.task.model}, {size}"),
        ("local step", _shown(result.step_time_s, "s")),
        ("besides, a call", small(result.steps.fixed_time_s, "s")),
        ("model exchange", _shown(result.comm_time_s, "s") + how),
        ("energy of a step", _shown(result.step_energy_j, "J")),
        ("energy of an exchange", _shown(result.comm_energy_j, "J")),
    ]
    if request.meter is not None and (idle := result.idle_watts) is not None:
        watts = result.steps.window.watts or 0.0
        power = f"{watts:.3g} W while training; {idle:.3g} W of idling are taken off"
        facts.append(("power", power))
    yield Facts(facts)
    cautions = (f"Caution: {caution}" for caution in document["cautions"])
    yield "\n".join([document["message"], request.energy_note, *cautions])


def _shown(measured: Measured | None, unit: str) -> str:
    if measured is None:
        return "unknown"
    value = small(measured.value, unit)
    return f"[bold]{value} ± {measured.spread:.1%}[/]" if measured.spread else f"[bold]{value}[/]"
