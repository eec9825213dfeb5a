"""What a `console` block tells people to type, and what it says they will see."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

NUMBER = r"\d[\d,]*(?:\.\d+)?"
# Losses depend on the processor in their last digits, so counts of rounds may, too.
TOLERANCE = {"rel_tol": 0.25, "abs_tol": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One line that is typed, what it prints as far as shown, and its exit code."""

    words: str
    output: str
    code: int = 0


def commands_of(text: str) -> list[Command]:
    """The commands of a block; `$ echo $?` after one says its exit code."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, _, output = part.replace("\\\n", " ").partition("\n")
        words = re.split(r"(?:^|\s)#", typed)[0].strip()
        if words == "echo $?":
            last = found.pop()
            found.append(Command(words=last.words, output=last.output, code=int(output)))
        elif words:
            found.append(Command(words=words, output=output))
    return found


def unlike(shown: str, printed: str) -> str:
    """How the output differs from what the page shows; empty if it does not.

    Words must be the same, numbers about the same, spaces do not count, and a `...` stands for
    anything, at the beginning and at the end too.
    """
    pattern, numbers = "", []
    for word in shown.split():
        if word == "...":
            pattern += r".*?"
            continue
        pattern += r"\s*"
        for place, piece in enumerate(re.split(f"({NUMBER})", word)):
            pattern += f"({NUMBER})" if place % 2 else re.escape(piece)
            numbers += [piece] if place % 2 else []
    found = re.fullmatch(pattern + r"\s*", printed, re.DOTALL)
    if found is None:
        return f"other words than\n{shown}\nin\n{printed}"
    return "".join(
        f"{said} on the page, but {seen}\n"
        for said, seen in zip(numbers, found.groups(), strict=True)
        if not math.isclose(_value(said), _value(seen), **TOLERANCE)
    )


def _value(number: str) -> float:
    return float(number.replace(",", ""))
