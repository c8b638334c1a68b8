"""Note down what a result was made with: time, commit, package versions, command."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

PACKAGES = ("payback", "numpy", "jax", "jaxlib", "array-api-compat", "pyarrow")


def provenance(command: str) -> dict[str, object]:
    """Describe the present: nothing in it tells machines, users or folders apart.

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
    """Return the commit this package runs from, "+changes" added if files differ; None outside a checkout."""
    package = Path(__file__).resolve().parents[1]
    top = _git(package, "rev-parse", "--show-toplevel")
    # An installed copy may lie inside somebody else's repository (a virtual environment): that is not ours.
    if top is None or Path(top) / "src" / "payback" != package:
        return None
    head = _git(package, "rev-parse", "HEAD")
    if head is None:
        return None
    return f"{head}+changes" if _git(package, "status", "--porcelain", "--", str(package)) else head


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
