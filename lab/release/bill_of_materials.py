"""Software bill of materials of the image of operator and controllers: its Python packages, by CycloneDX's own tool.

The packages are installed as in the image, into an environment of their own, and read from there. BuildKit adds a bill of materials of all
layers to each image when it builds it (`images.py`).
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from lab.downloads.cache import cached
from lab.release.commands import ROOT, run
from lab.setup.python_packages import CONSTRAINED

CONSTRAINTS = ROOT / "constraints.txt"


def write_bill(wheel: Path, target: Path, epoch_s: int) -> None:
    """Write the bill of the package in `wheel` with its dependencies to `target`, as CycloneDX JSON, validated by the tool."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "packages"
        run(sys.executable, "-m", "venv", "--without-pip", environment)
        _install(environment, *CONSTRAINED, wheel)
        tool = (_tools(), "-m", "cyclonedx_py", "environment", environment / "bin" / "python")
        about = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application")
        output = ("--output-reproducible", "--output-format", "JSON", "--output-file", target)
        run(*tool, *about, *output, epoch_s=epoch_s)


def _tools() -> Path:
    """Return a Python with the packages of the group `release`; the first call installs them into the cache."""
    digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()[:12]
    return cached(f"release-tools-{digest}", _install_tools) / "bin" / "python"


def _install_tools(folder: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    _install(folder, *CONSTRAINED, "--group", "release")


def _install(environment: Path, *what: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "--python", environment / "bin" / "python", "install", *what)
