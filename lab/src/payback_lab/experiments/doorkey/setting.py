"""The names of DoorKey's settings, a letter for each number, like s11-a0.02-g0.995-l0.95: read and written here."""

import re
from collections.abc import Mapping

NUMBER = r"([sagl])(-?\d+(?:\.\d+)?)"
"""s: size of the grid, a: α, g: γ, l: λ."""


def numbers_of(setting: str) -> dict[str, str]:
    """Read the numbers in the name of a setting, by letter; {} if it is no such name.

    >>> numbers_of("s11-a0.02-g0.995-l0.95"), numbers_of("g0.995"), numbers_of("fast"), numbers_of("a1-a2")
    ({'s': '11', 'a': '0.02', 'g': '0.995', 'l': '0.95'}, {'g': '0.995'}, {}, {})
    """
    found = re.findall(f"(?:^|-){NUMBER}", setting)
    numbers = dict(found)
    whole = "-".join(letter + number for letter, number in found) == setting
    return numbers if whole and len(numbers) == len(found) else {}


def name_of(numbers: Mapping[str, float]) -> str:
    """Write the name of a setting, as run ids have it.

    >>> name_of({"a": 0.020, "g": 0.9950})
    'a0.02-g0.995'
    """
    return "-".join(f"{letter}{number:.12g}" for letter, number in numbers.items())


def without_alpha(setting: str) -> str:
    """Name the setting of the runs without a bonus, which do not depend on α.

    >>> without_alpha("a0.02-g0.995")
    'g0.995'
    """
    return "-".join(letter + number for letter, number in numbers_of(setting).items() if letter != "a")
