"""Meters on trees of files as the kernel lays them out."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedplan.errors import FedplanError, InputError
from fedplan.profiling import find_meter, metered, profile_device
from fedplan.profiling.kernel_meters import MeterDeniedError, battery_meter, ina_meter, rapl_meter


def write(root: Path, **files: object) -> Path:
    """Files of one folder; as with the kernel's, nobody ever sees one that is half written."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        draft = root / f".{name}"
        draft.write_text(f"{text}\n")
        draft.replace(root / name)
    return root


def rapl(root, zone, name, energy, range_=262_143_328_850):
    return write(
        root / "sys/class/powercap" / zone, name=name, energy_uj=energy, max_energy_range_uj=range_
    )


def battery(root, name="BAT0", **files):
    files = {"type": "Battery", "status": "Discharging"} | files
    return write(root / "sys/class/power_supply" / name, **files)


def test_rapl_adds_up_packages_and_leaves_out_what_they_hold_already(tmp_path):
    first = rapl(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    second = rapl(tmp_path, "intel-rapl:1", "package-1", 5_000_000)
    inside = rapl(tmp_path, "intel-rapl:0:0", "core", 0)
    again = rapl(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    whole = rapl(tmp_path, "intel-rapl:2", "psys", 0)
    meter = rapl_meter(tmp_path)
    assert "2 processor packages" in meter.describe() and "the processor alone" in meter.describe()
    with metered(meter) as window:
        write(first, energy_uj=4_000_000)
        write(second, energy_uj=5_500_000)
        for zone in (inside, again, whole):
            write(zone, energy_uj=99_000_000)
    assert window.joules == pytest.approx(3.5)


def test_rapl_counters_may_start_again(tmp_path):
    zone = rapl(tmp_path, "intel-rapl:0", "package-0", 9_500_000, range_=10_000_000)
    meter = rapl_meter(tmp_path)
    with metered(meter) as window:
        write(zone, energy_uj=1_500_000)
    assert window.joules == pytest.approx(2.0)


@contextmanager
def without_privileges():
    """As somebody whom permissions bind: tests may be run by root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_meter_that_may_not_be_read_says_what_to_type():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        zone = rapl(root, "intel-rapl:0", "package-0", 1)
        root.chmod(0o755)
        (zone / "energy_uj").chmod(0o000)
        with without_privileges():
            with pytest.raises(MeterDeniedError, match=r"Type: sudo chmod a\+r .*energy_uj"):
                find_meter("rapl", root)
            meter, note = find_meter("auto", root)
            assert meter is None and "sudo chmod a+r" in note
        battery(root, power_now=5_000_000)  # the next best is taken, and the better one named
        with without_privileges():
            meter, note = find_meter("auto", root)
        assert meter is not None and meter.name == "battery" and "sudo chmod a+r" in note


def test_power_sensors_are_integrated_over_time(tmp_path):
    chip = write(tmp_path / "sys/class/hwmon/hwmon1", name="ina226", power1_input=2_000_000)
    write(tmp_path / "sys/class/hwmon/hwmon2", name="ina219", power1_input=500_000)
    write(tmp_path / "sys/class/hwmon/hwmon0", name="amdgpu", power1_input=90_000_000)
    write(tmp_path / "sys/class/hwmon/hwmon3", name="ina3221", in1_input=5_000)
    meter = ina_meter(tmp_path)
    assert "hwmon1/power1_input, hwmon2/power1_input" in meter.describe()
    with metered(meter) as window:
        time.sleep(0.2)
    assert window.watts == pytest.approx(2.5, rel=0.05)
    with metered(meter) as window:  # a power that rises in the middle
        time.sleep(0.3)
        write(chip, power1_input=4_000_000)
        time.sleep(0.3)
    assert 2.6 < window.watts < 4.4


def test_idle_power_is_measured_first_and_taken_off(tmp_path, clock):
    chip = write(tmp_path / "sys/class/hwmon/hwmon1", name="ina226", power1_input=1_000_000)

    def train(local_steps):
        write(chip, power1_input=5_000_000)
        clock.now += 0.002 * local_steps
        time.sleep(0.002 * local_steps)  # for the meter, whose clock is real

    meter = ina_meter(tmp_path)
    profile = profile_device(train, model_bytes=4, seconds=1.0, meter=meter, comm_time_s=2.0)
    assert profile.idle_watts == pytest.approx(1.0, rel=0.05)
    assert profile.step_energy_j.value == pytest.approx(4.0 * profile.step_time_s.value, rel=0.05)
    assert profile.comm_energy_j is None and profile.quantities()["comm_energy_j"] == 0.0
    assert any("stated exchange is unknown" in caution for caution in profile.cautions())
    whole = profile_device(train, model_bytes=4, seconds=1.0, meter=meter, idle_watts=0.0)
    assert whole.step_energy_j.value == pytest.approx(5.0 * whole.step_time_s.value, rel=0.05)
    more = profile_device(train, model_bytes=4, seconds=1.0, meter=meter, idle_watts=9.0)
    assert more.step_energy_j.value == 0.0
    assert any("no more power than idling" in caution for caution in more.cautions())


@pytest.mark.parametrize(
    ("files", "watts"),
    [
        ({"power_now": 7_500_000}, 7.5),
        ({"current_now": 500_000, "voltage_now": 12_000_000}, 6.0),
        ({"current_now": -500_000, "voltage_now": 4_000_000}, 2.0),
    ],
)
def test_a_battery_that_discharges_is_a_meter(tmp_path, files, watts):
    battery(tmp_path, **files)
    write(tmp_path / "sys/class/power_supply/AC", type="Mains", online=0)
    battery(tmp_path, "hidpp_battery_0", scope="Device", power_now=1_000_000)
    meter = battery_meter(tmp_path)
    assert meter.describe().startswith("discharge of BAT0:")
    with metered(meter) as window:
        time.sleep(0.1)
    assert window.watts == pytest.approx(watts, rel=0.05)


def test_a_battery_that_charges_is_none(tmp_path):
    folder = battery(tmp_path, power_now=7_500_000, status="Charging")
    with pytest.raises(InputError, match="Unplug the charger"):
        battery_meter(tmp_path)
    assert find_meter("auto", tmp_path)[0] is None
    write(folder, status="Discharging")
    meter = battery_meter(tmp_path)
    meter.start()
    write(folder, status="Charging")
    with pytest.raises(FedplanError, match="Unplug the charger"):
        meter.stop()


@pytest.mark.parametrize("text", ["", "many", "nan", "-4", "1e30"])
def test_a_reading_that_is_no_power_is_refused(tmp_path, text):
    write(tmp_path / "sys/class/hwmon/hwmon1", name="ina226", power1_input=text)
    with pytest.raises(FedplanError, match="power1_input"):
        find_meter("ina", tmp_path)


def test_auto_takes_the_processors_counters_first_and_says_so(tmp_path):
    battery(tmp_path, power_now=1_000_000)
    assert find_meter("auto", tmp_path)[0].name == "battery"
    write(tmp_path / "sys/class/hwmon/hwmon1", name="ina226", power1_input=2_000_000)
    assert find_meter("auto", tmp_path)[0].name == "ina"
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    meter, note = find_meter("auto", tmp_path)
    assert meter.name == "rapl" and "--meter auto chose rapl" in note and meter.is_measurement


def test_without_a_meter_energy_is_unknown(tmp_path):
    meter, note = find_meter("auto", tmp_path)
    assert meter is None and "No energy meter" in note and "constant:WATTS" in note
    with metered(None) as window:
        pass
    assert window.joules is None and window.watts is None
    for name in ("rapl", "ina", "battery"):
        with pytest.raises(InputError, match=f"meter {name}: this machine has no"):
            find_meter(name, tmp_path)


def test_a_constant_is_an_assumption():
    meter, note = find_meter("constant:4.5")
    assert not meter.is_measurement and "an assumption, not a measurement" in note
    with metered(meter) as window:
        time.sleep(0.05)
    assert window.watts == pytest.approx(4.5, rel=0.02)


@pytest.mark.parametrize(
    "choice",
    ["", "wind", "constant", "constant:", "constant:x", "constant:-1", "constant:nan", "rapl:0",
     "csv", "csv:", "constant:inf", "none:1", "AUTO"],
)  # fmt: skip
def test_a_choice_that_is_none_is_refused(choice):
    with pytest.raises(InputError):
        find_meter(choice)


def log_power(path, watts, stop, *, iso):
    """A plug's logger: a line a twentieth of a second until told to stop, and one after that."""
    last = False
    while not last:
        last = stop.wait(0.05)
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f"{now % 1:.6f}"[1:] + "Z"
        with path.open("a") as file:
            file.write(f"{stamp if iso else now},{watts}\n")


@pytest.mark.parametrize("iso", [True, False])
def test_a_plugs_file_is_integrated_while_it_grows(tmp_path, iso):
    path = tmp_path / "plug.csv"
    path.write_text(f"timestamp,watts\n{time.time() - 60},7\n")
    meter, note = find_meter(f"csv:{path}")
    assert "plug.csv" in note
    stop = threading.Event()
    logger = threading.Thread(target=log_power, args=(path, 7.0, stop), kwargs={"iso": iso})
    logger.start()
    try:
        with metered(meter) as window:
            time.sleep(0.2)
    finally:
        stop.set()
        logger.join()
    assert window.joules == pytest.approx(7.0 * window.seconds, rel=0.02)


def test_trapezoids_between_readings(tmp_path):
    from fedplan.profiling.meters import integrate, read_power

    path = tmp_path / "plug.csv"
    path.write_text("timestamp,watts\n110,20\n100,10\n120,0\n")
    readings = read_power(path)
    assert integrate(readings, 100, 120, "plug.csv") == pytest.approx(250)
    assert integrate(readings, 105, 115, "plug.csv") == pytest.approx(17.5 * 5 + 15 * 5)
    assert integrate(readings, 101, 102, "plug.csv") == pytest.approx(11.5)
    for start, end in ((99, 110), (110, 121), (200, 300)):
        with pytest.raises(FedplanError, match=r"must cover .* but covers 1970-01-01T00:01:40"):
            integrate(readings, start, end, "plug.csv")


def test_a_plugs_file_that_ends_too_early_is_waited_for_and_refused(tmp_path):
    from fedplan.profiling.meters import PlugMeter

    path = tmp_path / "plug.csv"
    path.write_text(f"timestamp,watts\n{time.time() - 60},7\n{time.time()},7\n")
    meter = PlugMeter(path, wait_s=0.3)
    meter.start()
    with pytest.raises(FedplanError, match="go on writing"):
        meter.stop()


def test_every_problem_of_a_plugs_file_is_named(tmp_path):
    path = tmp_path / "plug.csv"
    path.write_text("timestamp,watts\nyesterday,5\n2026-01-01T00:00:00,-3\n7,inf\n")
    with pytest.raises(InputError) as error:
        find_meter(f"csv:{path}")
    assert [(p.line, p.column) for p in error.value.problems] == [
        (2, "timestamp"), (3, "watts"), (4, "watts")
    ]  # fmt: skip
    with pytest.raises(InputError, match="no such file"):
        find_meter(f"csv:{tmp_path}/none.csv")
    path.write_text("time;power\n")
    with pytest.raises(InputError, match="commas"):
        find_meter(f"csv:{path}")


def test_a_meter_of_a_library_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("fedplan.profiling.library_meters.find_spec", lambda _: None)
    with pytest.raises(FedplanError, match="Type: pip install zeus-ml"):
        find_meter("zeus")
    with pytest.raises(FedplanError, match="codecarbon is not installed"):
        find_meter("codecarbon")


@pytest.mark.skipif(find_spec("zeus") is None, reason="NOT TESTED: zeus is not installed.")
@pytest.mark.filterwarnings("default")
def test_zeus_itself_measures_or_says_why_it_cannot():
    meter, said = find_meter("auto", Path("/nonexistent"))
    if meter is None:  # a machine without counters, or with a driver's package and no driver
        with pytest.raises(FedplanError, match=r"Zeus finds neither|cannot be used here"):
            find_meter("zeus")
        return
    assert "--meter auto chose zeus" in said
    with metered(meter) as window:
        time.sleep(0.2)
    assert window.joules >= 0


@pytest.mark.skipif(
    find_spec("codecarbon") is None, reason="NOT TESTED: codecarbon is not installed."
)
@pytest.mark.filterwarnings("default")
def test_codecarbon_itself_counts_each_window_alone():
    meter, said = find_meter("codecarbon")
    assert "a guess by the processor's load" in said and not meter.is_measurement
    seen = []
    for _ in range(2):
        with metered(meter) as window:
            time.sleep(1.0)
        seen.append(window.watts)
    assert all(0.1 < watts < 2000 for watts in seen)
    assert max(seen) < 5 * min(seen)  # not what was counted before, once more
