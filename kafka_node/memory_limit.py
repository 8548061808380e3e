"""Memory limit of the process's control group."""

from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
V1_FILE, V2_FILE = "memory.limit_in_bytes", "memory.max"
NO_LIMIT = 2**60
"""Version 1 writes a number near 2^63 where there is no limit."""


def memory_limit_bytes(root: Path = CGROUP_ROOT, own: Path = OWN_CGROUP) -> int | None:
    """Return the lowest limit of the process's control group and its parents; None: no limit, or no control group."""
    limits = [found for folder, name in _limit_files(root, own) if (found := _read(folder / name)) is not None]
    return min(limits, default=None)


def _limit_files(root: Path, own: Path) -> list[tuple[Path, str]]:
    """List folders and files that may contain limits. In a container the root is the container's group, and outside paths do not exist."""
    files = [(root, V2_FILE), (root / "memory", V1_FILE)]
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return files
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(1, len(parts) + 1):
            within = Path(*parts[:depth])
            if not controllers:
                files.append((root / within, V2_FILE))
            elif "memory" in controllers.split(","):
                files.append((root / "memory" / within, V1_FILE))
    return files


def _read(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdigit() and 0 < int(text) < NO_LIMIT else None
