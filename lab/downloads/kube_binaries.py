"""Sources of etcd, kube-apiserver and kubectl.

The first source that has all three: the folder in `KUBEBUILDER_ASSETS`, then PATH (the usual places for tests of controllers),
then a packed copy in `shared/kube` next to the checkout, then a build from the Go modules. The last two fill the user's cache once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.downloads.cache import cache_folder, cached
from lab.downloads.go_build import MODULE_FOLDER, PROGRAMS, build_kubernetes
from lab.errors import LabError, find_tool

PACKED_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "kube"

UNPACK_TIMEOUT_S = 300
"""Five seconds on two idle cores."""


@dataclass(frozen=True, slots=True)
class KubeBinaries:
    """Paths of the three programs, all from one source, which `source` names."""

    etcd: str
    kube_apiserver: str
    kubectl: str
    source: str


def kube_binaries() -> KubeBinaries:
    """Return the programs; the first call may unpack (seconds) or build (minutes) them.

    Raises `Missing` when they would have to be built and there is no Go.
    """
    if found := _installed():
        return found
    packed = packed_folder()
    return built_kube_binaries() if packed is None else _in_folder(packed)


def kube_source() -> str:
    """Describe where `kube_binaries` gets the programs from."""
    if found := _installed():
        return f"found in {found.source}"
    if _has_packed_copy():
        return "unpacked into the cache"
    if (cache_folder() / _built_name()).is_dir():
        return "built earlier, in the cache"
    return "built from Go modules, 10 minutes on two cores; with KUBEBUILDER_ASSETS=FOLDER, used as they are"


def packed_folder() -> Path | None:
    """Return the folder with the programs of the packed copy next to the checkout, None without such a copy."""
    if not _has_packed_copy():
        return None
    return cached(f"kube-packed-{_fingerprint(PACKED_FOLDER / 'versions.env')}", _unpack) / "bin"


def built_kube_binaries() -> KubeBinaries:
    """Return the programs built from their Go modules, whatever other sources there are."""
    return _in_folder(cached(_built_name(), build_kubernetes))


def _installed() -> KubeBinaries | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (found := _in_path(assets, "KUBEBUILDER_ASSETS")):
        return found
    return _in_path(os.environ.get("PATH", os.defpath), "PATH")


def _has_packed_copy() -> bool:
    return (PACKED_FOLDER / "kube-bin.tar.xz").is_file() and (PACKED_FOLDER / "binaries").is_file()


def _built_name() -> str:
    return f"kube-built-{_fingerprint(MODULE_FOLDER / 'go.mod')}"


def _in_path(path: str, source: str) -> KubeBinaries | None:
    etcd, kube_apiserver, kubectl = (shutil.which(program, path=path) for program in PROGRAMS)
    if etcd is None or kube_apiserver is None or kubectl is None:
        return None
    return KubeBinaries(etcd, kube_apiserver, kubectl, source)


def _in_folder(folder: Path) -> KubeBinaries:
    found = _in_path(str(folder), str(folder))
    if found is None:
        raise LabError(f"{folder} lacks one of {', '.join(PROGRAMS)}; remove that folder and run again")
    return found


def _unpack(folder: Path) -> None:
    find_tool("xz", purpose="unpacks the Kubernetes API server", install="apt-get install --yes xz-utils")
    command = ["bash", str(PACKED_FOLDER / "binaries"), str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=UNPACK_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def _fingerprint(path: Path) -> str:
    """Return a short name for a file's content: other versions make another entry of the cache."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
