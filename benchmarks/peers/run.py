"""fedplan's simulator against its peers, side by side; run with `make benchmark-peers`.

Builds each peer's environment (once), writes each workload's data once, then lets the engines take
turns, repeat after repeat, and prints local steps a second, how many times faster fedplan is, and
the share of the machine's measured peak it reaches. Exits with 1 where the engines' losses show
that they did not train the same thing, or where an engine failed; a peer that cannot be installed
is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from comparison import MODES, US, disagreements, peak_share, speed, table
from environments import BuildError, python_of
from workloads import BATCH, SPECS, Spec, loss_flop, step_flop, write_data

from fedplan.errors import InputError
from fedplan.tasks import FederatedData

HERE = Path(__file__).parent
# The peer of each entrant; whether one worker uses all cores, or each core has a federation of its
# own; and whether it is leaner than an app would be.
ENTRANTS = {
    "flower": ("flower", "one worker", False),
    "flower-lean": ("flower", "one worker", True),
    "flower-split": ("flower", "a worker a core", True),
    "fedjax": ("fedjax", "one worker", True),
    "fedjax-split": ("fedjax", "a worker a core", True),
    "pfl": ("pfl", "a worker a core", True),
    "torch": ("torch", "one worker", True),
    "torch-split": ("torch", "a worker a core", True),
}
ENGINE_TIMEOUT_S = 1200
BUSY = 0.5  # load average before the start from which on a run is not to be trusted
TAIL = 8  # lines of a failed engine's complaint that are shown
# Everything stays on this machine's processor, and nobody phones home.
QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "FLWR_TELEMETRY_ENABLED": "0",
    "JAX_PLATFORMS": "cpu",
    "PFL_PYTORCH_DEVICE": "cpu",
    "PYTHONNOUSERSITE": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(slots=True)
class Outcome:
    """One workload's reports, by engine, and what went wrong."""

    reports: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    peak_shares: dict[str, float] = field(default_factory=dict)


def sgemm_peak(seconds: float = 2.0) -> float:
    """Operations a second of the fastest single-precision matrix product, on all cores."""
    a = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
    a @ a
    times: list[float] = []
    while sum(times) < seconds:
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2 * 2048**3 / min(times)


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def run_engine(engine: str, python: Path, data: Path, workload: Path) -> dict[str, Any] | str:
    """One engine's report, or the end of what it said instead."""
    command = [str(python), str(HERE / "engines" / f"{engine}_engine.py"), str(data), str(workload)]
    folder = str(data.parent)
    homes = {"FLWR_HOME": folder, "RAY_TMPDIR": folder, "TMPDIR": folder}
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(
        command, env={**inherited, **QUIET, **homes}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        said, complained = process.communicate(timeout=ENGINE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"no result within {ENGINE_TIMEOUT_S} s"
    finally:
        with suppress(ProcessLookupError):  # its workers, where it has left any behind
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        return "\n".join((said + complained).splitlines()[-TAIL:])
    report: dict[str, Any] = json.loads(said.splitlines()[-1])
    return report


def run_workload(
    spec: Spec, data: FederatedData, pythons: Mapping[str, Path], options: argparse.Namespace
) -> Outcome:
    """All engines in turn, as often as asked; one that fails is left out from then on."""
    outcome = Outcome()
    cores = len(os.sched_getaffinity(0))
    settings = {
        "name": spec.name,
        "model": spec.model,
        "num_classes": data.num_classes,
        "clients_per_round": spec.clients_per_round,
        "local_steps": spec.local_steps,
        "batch_size": BATCH,
        "learning_rate": spec.learning_rate,
        "seeds": list(range(cores)),
        "cores": cores,
        "seconds": options.seconds,
    }
    with tempfile.TemporaryDirectory(prefix="peers", ignore_cleanup_errors=True) as folder:
        arrays, workload = Path(folder) / "data.npz", Path(folder) / "workload.json"
        write_data(arrays, spec, data, range(cores))
        for repeat in range(options.repeats):
            for engine, python in pythons.items():
                if engine in outcome.failures:
                    continue
                reports = outcome.reports.setdefault(engine, [])
                # Losses are compared the first time; slow peers need not go that far every time.
                settings["min_rounds"] = {"training": 1, "evaluation": 1 if repeat else spec.rounds}
                ours = (US, "a worker a core", True)
                name, settings["workers"], settings["lean"] = ENTRANTS.get(engine, ours)
                workload.write_text(json.dumps(settings))
                start = time.perf_counter()
                report = run_engine(name, python, arrays, workload)
                took = time.perf_counter() - start
                print(f"  {spec.name}, turn {repeat + 1}: {engine} took {took:.0f} s", flush=True)
                if isinstance(report, str):
                    outcome.failures[engine] = report
                    continue
                curves = report["losses"].items()  # only what is compared is kept
                report["losses"] = {seed: curve[: spec.rounds] for seed, curve in curves}
                reports.append(report)
    outcome.reports = {engine: reports for engine, reports in outcome.reports.items() if reports}
    first = {engine: reports[0] for engine, reports in outcome.reports.items()}
    outcome.problems = disagreements(first, spec.rounds)
    return outcome


def print_outcome(spec: Spec, data: FederatedData, outcome: Outcome, peak: float) -> None:
    """The table of one workload, and what is to be said about it."""
    print(
        f"\n{spec.name}: {data.num_clients} clients, {data.num_samples:,} samples; "
        f"K={spec.clients_per_round}, E={spec.local_steps}, batches of {BATCH}"
    )
    print("\n".join(table(outcome.reports)))
    for engine, reports in outcome.reports.items():
        packages = reports[0]["versions"].items()
        versions = ", ".join(f"{name} {number}" for name, number in packages)
        print(f"  {engine}: {reports[0]['setting']}; {versions}")
    if US in outcome.reports:
        for mode, words in MODES.items():
            share = peak_share(
                speed(outcome.reports[US], mode).median, mode,
                step_flop=step_flop(spec.model, data), loss_flop=loss_flop(spec.model, data),
                steps_per_round=spec.steps_per_round, peak=peak,
            )  # fmt: skip
            outcome.peak_shares[mode] = share
            print(f"  {US} {words}: {share:.1%} of the sgemm peak, {peak / 1e9:.0f} GFLOP/s")
    for engine, said in outcome.failures.items():
        print(f"  {engine} failed:\n    " + said.replace("\n", "\n    "))
    if outcome.problems:
        print("  THE ENGINES DO NOT AGREE:\n    " + "\n    ".join(outcome.problems))
    else:
        print(f"  all engines agree on the loss after {spec.rounds} rounds")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [spec.name for spec in SPECS]
    parser.add_argument("--peers", nargs="*", choices=ENTRANTS, default=ENTRANTS, metavar="PEER",
                        help=f"of {', '.join(ENTRANTS)}; all unless given")  # fmt: skip
    parser.add_argument("--workloads", nargs="+", choices=names, default=names, metavar="WORKLOAD",
                        help=f"of {', '.join(names)}; all unless given")  # fmt: skip
    parser.add_argument("--repeats", type=int, default=3, help="turns of every engine (default 3)")
    parser.add_argument("--seconds", type=float, default=4.0,
                        help="of every timing; one round at least (default 4)")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE", help="every measurement, as JSON")
    return parser.parse_args()


def main() -> int:
    """Build, run, print, write; 1 where losses disagree, an engine failed or nothing was run."""
    options = parse()
    pythons, unbuilt = {US: Path(sys.executable)}, {}
    for entrant in options.peers:
        try:
            pythons[entrant] = python_of(ENTRANTS[entrant][0])
        except BuildError as error:
            unbuilt[entrant] = str(error)
            print(error)
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    print(f"load average before: {load:.2f}, {cores} cores")
    if load > BUSY:
        print("WARNING: other work is running, so these numbers say little.")
    peaks, outcomes, skipped = [], {}, {}
    for spec in SPECS:
        if spec.name not in options.workloads:
            continue
        try:
            data = spec.make_data()
        except InputError as error:
            skipped[spec.name] = str(error)
            print(f"\n{spec.name}: not run. {error}")
            continue
        peaks.append(sgemm_peak())
        outcomes[spec.name] = run_workload(spec, data, pythons, options)
        peaks.append(sgemm_peak())
        print_outcome(spec, data, outcomes[spec.name], max(peaks))
    results = {
        "machine": {
            "processor": processor(),
            "cores": cores,
            "load_average_before": load,
            "sgemm_peak_gflops": [round(peak / 1e9, 1) for peak in peaks],
        },
        "options": {"repeats": options.repeats, "seconds": options.seconds},
        "not_built": unbuilt,
        "not_run": skipped,
        "workloads": {
            name: {
                "reports": outcome.reports,
                "failures": outcome.failures,
                "disagreements": outcome.problems,
                "share_of_sgemm_peak": outcome.peak_shares,
            }
            for name, outcome in outcomes.items()
        },
    }
    if options.output is not None:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        print(f"written: {options.output}")
    bad = any(outcome.problems or outcome.failures for outcome in outcomes.values())
    return 1 if bad or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
