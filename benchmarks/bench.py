"""Measure speed beside peers, as ratios, and print what changed since the committed ones: `make bench`

    python benchmarks/bench.py [PART …]        core, advantage, adapters, bonuses, rllte, engine, learner, arena; or all
    python benchmarks/bench.py --page          write the tables of docs/results/speed.md from benchmarks/ratios.json

Writes benchmarks/ratios.json, part by part. Each part is a script that takes its sides in turns in one process, because
on a shared machine a ratio means something and a time does not. A part that fails, and a ratio whose peer is not
installed, keep their committed values: rllte is in .envs/hosts; for navix and xminigrid run `engine` and `arena` with
the Python of an environment that has them.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RATIOS, PAGE = ROOT / "benchmarks" / "ratios.json", ROOT / "docs" / "results" / "speed.md"
HOSTS = ROOT / ".envs" / "hosts" / "bin" / "python"
PARTS = {
    "core": ["benchmarks/core.py"],
    "advantage": ["benchmarks/advantage.py"],
    "adapters": ["benchmarks/integrations.py"],
    "bonuses": ["benchmarks/bonuses.py"],
    "rllte": ["benchmarks/bonuses.py"],  # rllte lives in an environment of its own
    "engine": ["lab/benchmarks/minigrid_engine.py", "DoorKey-8x8", "FourRooms", "Empty-8x8"],
    "learner": ["lab/benchmarks/doorkey.py"],
    "arena": ["lab/benchmarks/arena_learner.py", "--peer"],
}
NOTABLE = 0.1
"""A ratio that changed by more than a tenth is printed: what the same code varies by from run to run is below."""
TABLES = {
    "update": ("transform", {"update": "× NormalizeReward"}),
    "rollout": (
        "transform",
        {
            "rollout, NumPy": "NumPy, copies",
            "rollout, JAX": "JAX jitted, copies",
            "rollout, memory": "NumPy's peak, inputs",
        },
    ),
    "growth": ("varied", {"growth": "cost"}),
    "advantage": ("T × B", {f"advantage, {library}": library for library in ("NumPy", "Torch", "JAX", "JAX, alone")}),
    "gymnasium": ("transform", {"gymnasium": "× NormalizeReward"}),
    "sb3": ("PPO on", {"sb3": "share of its steps per second lost"}),
    "rnd": ("RND of", {"rnd": "ours ÷ theirs"}),
    "of_rollout": ("bonus", {"of_rollout": "steps per second, after the rollout ÷ at every step"}),
    "engine": ("task and peer", {"engine": "steps per second, ours ÷ theirs"}),
    "doorkey": ("what", {"doorkey": "ratio"}),
    "arena": ("learner", {"arena": "steps per second, of the paper's learner"}),
}
"""Mark on the page → its first column, and the tables of ratios.json beside it with their headings."""

Ratios = dict[str, dict[str, float]]


def measure(part: str) -> Ratios:
    """Run a part's script and return its tables; none where its environment is missing."""
    python = HOSTS if part == "rllte" else Path(sys.executable)
    if not python.exists():
        print(f"{part}: left out, because {python.relative_to(ROOT)} is missing: make test-hosts sets it up")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ratios.json"
        subprocess.run([python, *PARTS[part], "--json", out], cwd=ROOT, check=True)
        return json.loads(out.read_text())


def changes(before: Ratios, after: Ratios) -> list[str]:
    """Return a line for each ratio that is new or has changed notably."""
    lines = []
    for table, ratios in after.items():
        for name, ratio in ratios.items():
            old = before.get(table, {}).get(name)
            if old is None:
                lines.append(f"{table}: {name}: {ratio:.3g}, new")
            elif abs(ratio / old - 1) > NOTABLE:
                lines.append(f"{table}: {name}: {old:.3g} → {ratio:.3g} ({ratio / old - 1:+.0%})")
    return lines


def shown(ratio: float | None) -> str:
    """Return a ratio as the page shows it.

    >>> [shown(ratio) for ratio in (0.028, 0.5949, 18.31, 1155.2, None)]
    ['0.028', '0.59', '18.3', '1,155', '–']
    """
    if ratio is None:
        return "–"
    return (
        f"{ratio:.3f}"
        if ratio < 0.1
        else f"{ratio:.2f}"
        if ratio < 2
        else f"{ratio:.1f}"
        if ratio < 100
        else f"{ratio:,.0f}"
    )


def table(ratios: Ratios, mark: str) -> str:
    """Return a table of the page."""
    first, columns = TABLES[mark]
    rows = dict.fromkeys(name for column in columns for name in ratios.get(column, {}))
    if not rows:
        return "Not measured since the redesign."
    lines = [f"| {first} | {' | '.join(columns.values())} |", "|---|" + "---:|" * len(columns)]
    for name in rows:
        cells = (shown(ratios.get(column, {}).get(name)) for column in columns)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def page(text: str, ratios: Ratios) -> str:
    """Fill the tables between the page's marks."""
    for mark in TABLES:
        pattern = rf"(<!-- ratios: {mark} -->\n).*?(<!-- end -->)"
        text, found = re.subn(
            pattern, lambda m, mark=mark: f"{m[1]}\n{table(ratios, mark)}\n\n{m[2]}", text, flags=re.S
        )
        if found != 1:
            raise SystemExit(f"{PAGE.relative_to(ROOT)} has {found} places for the table {mark}, not one")
    return text


def main() -> int:
    """Measure what is asked for, write it, and print what changed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure; everything if left out")
    parser.add_argument("--page", action="store_true", help="only write the tables of docs/results/speed.md")
    asked = parser.parse_args()
    before: Ratios = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    after = {name: dict(ratios) for name, ratios in before.items()}
    failed = []
    for part in () if asked.page else asked.parts or PARTS:
        try:
            measured = measure(part)
        except subprocess.CalledProcessError:  # its script has said why
            failed.append(part)
            continue
        for name, ratios in measured.items():
            after.setdefault(name, {}).update({row: float(f"{ratio:.4g}") for row, ratio in ratios.items()})
        RATIOS.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(PAGE.read_text(), after))
    if not asked.page:
        print(*(changes(before, after) or ["nothing changed by more than a tenth"]), sep="\n")
    if failed:
        print(f"failed, and kept as committed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
