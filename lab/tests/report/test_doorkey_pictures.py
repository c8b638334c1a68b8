"""The pictures of DoorKey show what the states say."""

import re
import xml.etree.ElementTree as ET

import numpy as np

from payback_lab.report.charts.doorkey import AGENT, DOOR, KEY, VISITED, animation, picture, room, strips

FILM = {
    "wall": np.full(4, 4),
    "door_row": np.full(4, 3),
    "door": np.array([2, 2, 1, 0]),
    "x": np.array([1, 1, 2, 2]),
    "y": np.array([1, 1, 1, 2]),
    "direction": np.array([0, 1, 2, 3]),
    "key_x": np.array([3, 3, -1, -1]),
    "key_y": np.array([5, 5, -1, -1]),
    "time": np.arange(4),
}


def test_the_key_is_drawn_until_it_is_carried() -> None:
    lying, carried = room(FILM, 1), room(FILM, 2)
    assert lying.count("<path") == 2
    assert carried.count("<path") == 1
    assert f'fill="{AGENT}" stroke="{KEY}"' in carried
    assert f'fill="{AGENT}" stroke="{KEY}"' not in lying


def test_the_door_is_locked_then_shut_then_open() -> None:
    circles = [room(FILM, frame).count("<circle") for frame in range(4)]
    assert circles == [2, 2, 0, 0]  # the key's bow and the lock, then neither
    heights = [re.search(rf'height="(\d+)" fill="{DOOR}"', room(FILM, frame))[1] for frame in (2, 3)]
    assert int(heights[1]) < int(heights[0])


def test_longer_stays_are_darker_and_the_agent_turns() -> None:
    shades = re.findall(rf'fill="{VISITED}" fill-opacity="([\d.]+)"', room(FILM, 3))
    assert [float(shade) for shade in shades] == [0.25, 0.12, 0.12]
    assert [re.search(r"rotate\((\d+)\)", room(FILM, f))[1] for f in range(4)] == ["0", "90", "180", "270"]


def test_strips_are_sound_svg_with_escaped_titles() -> None:
    svg = strips({"no IM": FILM, "<script>": FILM})
    root = ET.fromstring(svg)
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("4 steps") == 2
    assert "<script>" in words
    assert "<script" not in svg
    assert [w for w in words if w and w.startswith("step ")] == [f"step {i}" for i in range(4)] * 2
    ET.fromstring(picture(FILM))


def test_agents_move_as_their_episodes_did_and_the_shorter_one_waits() -> None:
    short = {name: part[:2] for name, part in FILM.items()}
    svg = ET.fromstring(animation({"no IM": FILM, "<b>": short}))
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["no IM", "<b>"]
    moves = [m.get("values") for m in svg.iter("{http://www.w3.org/2000/svg}animateTransform")]
    assert moves == ["27 27;27 27;45 27;45 45", "0;90;180;270", "27 27;27 27;27 27;27 27", "0;90;90;90"]
    seen = [m.get("values") for m in svg.iter("{http://www.w3.org/2000/svg}animate")]
    shut, opened, key = seen[:3]
    assert shut == "visible;visible;visible;hidden"
    assert opened == "hidden;hidden;hidden;visible"
    assert key == "visible;visible;hidden;hidden"


def test_a_long_episode_is_cut() -> None:
    svg = ET.fromstring(animation({"no IM": FILM}, steps=3))
    assert next(svg.iter("{http://www.w3.org/2000/svg}animateTransform")).get("values").count(";") == 2
