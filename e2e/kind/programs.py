"""Sources of kind, helm and kubectl, and of the programs in a node's image.

The three are taken from PATH when all are there; otherwise everything comes from the packed copy next to the checkout, or is built
from the Go modules in `modules/` (about ten minutes on two cores, once: the user's cache keeps it).
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.go_build import build_programs, kubernetes_stamps
from lab.downloads.kube_binaries import built_kube_binaries, packed_folder

MODULES_FOLDER = Path(__file__).parent / "modules"

NAMES_OF_KUBE = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubeadm",
    "kubectl",
)
"""Names of the links to the one file `kube`."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Paths of the programs that a cluster is made and used with."""

    kind: Path
    helm: Path
    kubectl: Path


def clients_on_path() -> Clients | None:
    """Return kind, helm and kubectl when PATH has all of them."""
    kind, helm, kubectl = (shutil.which(name) for name in ("kind", "helm", "kubectl"))
    if kind is None or helm is None or kubectl is None:
        return None
    return Clients(Path(kind), Path(helm), Path(kubectl))


def clients() -> Clients:
    """Return the programs; the first call may unpack or build them."""
    found = clients_on_path()
    if found is not None:
        return found
    folder = programs_folder()
    return Clients(folder / "kind", folder / "helm", folder / "kubectl")


def programs_folder() -> Path:
    """Return the folder with kube under all its names, etcd, coredns, pause, kind and helm."""
    return packed_folder() or cached(f"kind-built-{_fingerprint()}", _build)


def _build(folder: Path) -> None:
    build_programs(MODULES_FOLDER / "kube", {"kube": "."}, folder, linker_flags=kubernetes_stamps())
    build_programs(MODULES_FOLDER / "coredns", {"coredns": "."}, folder)
    build_programs(MODULES_FOLDER / "pause", {"pause": "."}, folder)
    build_programs(MODULES_FOLDER / "clients", {"kind": "sigs.k8s.io/kind", "helm": "helm.sh/helm/v3/cmd/helm"}, folder)
    shutil.copy2(built_kube_binaries().etcd, folder / "etcd")
    for name in NAMES_OF_KUBE:
        (folder / name).symlink_to("kube")


def _fingerprint() -> str:
    """Return a short name for the versions that are built: other versions are another entry of the cache."""
    digest = hashlib.sha256()
    for path in sorted(MODULES_FOLDER.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
