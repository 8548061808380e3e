"""helm: from PATH, from the packed copy next to the checkout, or built from its Go module.

The go.mod file is that of the clients of the end-to-end tests.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.go_build import build_programs
from lab.downloads.kube_binaries import packed_folder
from lab.errors import LabError

MODULE_FOLDER = Path(__file__).resolve().parents[2] / "e2e" / "kind" / "modules" / "clients"


def helm() -> Path:
    """Return the program; the first call may unpack (seconds) or build (minutes) it. `Missing` when it would be built without Go."""
    found = shutil.which("helm")
    if found is not None:
        return Path(found)
    packed = packed_folder()
    if packed is not None and (packed / "helm").is_file():
        return packed / "helm"
    built = cached(f"helm-built-{hashlib.sha256((MODULE_FOLDER / 'go.mod').read_bytes()).hexdigest()[:12]}", _build)
    if not (built / "helm").is_file():
        raise LabError(f"{built} lacks helm; remove that folder and run again")
    return built / "helm"


def _build(folder: Path) -> None:
    build_programs(MODULE_FOLDER, {"helm": "helm.sh/helm/v3/cmd/helm"}, folder)
