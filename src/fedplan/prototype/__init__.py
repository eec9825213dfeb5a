"""A federation of shaped devices on one Linux machine: processes, namespaces, quotas, keys.

It starts Flower's own programs and imports nothing of Flower.
"""

from fedplan.prototype.federation import Member, Removed, down, next_commands, status, up
from fedplan.prototype.profiles import Device, read_profile
from fedplan.prototype.state import State

__all__ = [
    "Device",
    "Member",
    "Removed",
    "State",
    "down",
    "next_commands",
    "read_profile",
    "status",
    "up",
]
