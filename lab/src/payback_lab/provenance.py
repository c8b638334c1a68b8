"""What a result was made with: time, commit, package versions, command."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PACKAGES = ("payback", "payback-lab", "numpy", "jax", "jaxlib", "array-api-compat", "pyarrow")
PACKAGES += ("torch", "stable-baselines3", "gymnasium", "minigrid")


def provenance(command: str) -> dict[str, object]:
    """Describe how a result is made now; it holds no name of a machine, a user or a folder.

    >>> sorted(provenance("payback-lab run cliff"))
    ['command', 'commit', 'created', 'packages', 'platform', 'python']
    """
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def commit() -> str | None:
    """Return the commit this code runs from, "+changes" added if library or lab differ; None outside a checkout."""
    lab = Path(__file__).resolve().parent
    top = _git(lab, "rev-parse", "--show-toplevel")
    # An installed copy may lie inside another repository (in its virtual environment), whose commit says nothing.
    if top is None or Path(top) / "lab" / "src" / "payback_lab" != lab:
        return None
    head = _git(lab, "rev-parse", "HEAD")
    if head is None:
        return None
    library = Path(top) / "src" / "payback"
    return f"{head}+changes" if _git(lab, "status", "--porcelain", "--", str(lab), str(library)) else head


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
