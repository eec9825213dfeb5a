from __future__ import annotations

import pytest

from fedplan.errors import InputError
from profiles import Device, read_profile

DEVICES = """
[[device]]
name = "camera"
cpu = 0.1
up-mbit = 2
down-mbit = 8.5
delay-ms = 30

[[device]]
name = "gateway"
"""


def test_a_file_names_devices_and_what_it_leaves_out_has_no_limit(tmp_path):
    path = tmp_path / "devices.toml"
    path.write_text(DEVICES)
    assert read_profile(str(path)) == (
        Device(name="camera", cpu=0.1, up_mbit=2, down_mbit=8.5, delay_ms=30),
        Device(name="gateway"),
    )
    with pytest.raises(InputError, match="names 2 devices, but --devices asks for 3"):
        read_profile(str(path), 3)


def test_all_problems_of_a_file_are_said_at_once(tmp_path):
    path = tmp_path / "devices.toml"
    path.write_text("""
colour = "red"
[[device]]
name = "../escape"
cpu = 0
[[device]]
name = "twin"
up-mbit = "fast"
memory = 3
[[device]]
name = "twin"
down-mbit = inf
cpu = true
[[device]]
name = "superlink"
""")
    with pytest.raises(InputError) as error:
        read_profile(str(path))
    said = [problem.message for problem in error.value.problems]
    assert [text.split(" ")[0:2] for text in said if text.startswith("device")] == [
        ["device", "1:"],
        ["device", "1:"],
        ["device", "2:"],
        ["device", "2:"],
        ["device", "3:"],
        ["device", "3:"],
        ["device", "4:"],
    ]
    assert "has the key colour, which is unknown." in said
    assert "has two devices named 'twin'; names must differ." in said
    assert {problem.source for problem in error.value.problems} == {str(path)}


@pytest.mark.parametrize("content", ["", "device = 3", "device = []", "device = [1]"])
def test_a_file_without_devices_is_refused(tmp_path, content):
    path = tmp_path / "devices.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=r"must have a \[\[device\]\] table"):
        read_profile(str(path))


@pytest.mark.parametrize("content", [b"[[device]", b"\xff\xfe"])
def test_what_is_no_toml_is_refused(tmp_path, content):
    path = tmp_path / "devices.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_profile(str(path))


def test_an_unknown_profile_names_those_that_are_built_in():
    with pytest.raises(InputError, match="Built in: pi-mix, even"):
        read_profile("pi-mixx")


def test_the_mix_differs_in_proportion_and_the_even_ones_do_not():
    mix = read_profile("pi-mix", 6)
    assert len({device.name for device in mix}) == 6
    assert len({device.cpu for device in mix}) == 3
    assert sum(device.cpu for device in mix) < 1.8  # six fit on two cores, with a SuperLink
    assert len({(device.cpu, device.up_mbit) for device in read_profile("even", 4)}) == 1
