"""A Docker engine: one that runs already, or as root on Debian one that is installed and started here.

An engine that was started here continues when this process ends: it costs nothing while it holds no container.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from e2e.command import attempt, run
from lab.downloads.cache import cache_folder
from lab.errors import LabError, Missing
from lab.processes.waiting import wait_until

PACKAGES = {
    "dockerd": "docker.io",
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "debootstrap": "debootstrap",
    "jq": "jq",
    "xz": "xz-utils",
    "go": "golang-go",
}
"""Program -> Debian's package of it: the engine, what makes images without a registry, and Go, which fetches kind's own files."""

INSTALL_TIMEOUT_S = 600

READY_TIMEOUT_S = 60

SYS_RESOURCE = 24
"""Number of the capability CAP_SYS_RESOURCE; some virtual machines take it from root, and privileged containers ask for it."""

HELD_RUNTIME = Path(__file__).parent / "runc-held"


def engine_answers() -> bool:
    """Whether a Docker engine can be used."""
    return shutil.which("docker") is not None and attempt("docker", "info").returncode == 0


def ensure_engine() -> None:
    """Return when an engine answers; install and start one if need be. Raises `Missing` where that cannot be done."""
    if engine_answers():
        return
    _install()
    log = cache_folder() / "dockerd.log"
    with log.open("wb") as output:
        # In a session of its own and without open files of this process: it outlives this process.
        subprocess.Popen(
            ["dockerd", *_runtime()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    wait_until(
        engine_answers,
        timeout_s=READY_TIMEOUT_S,
        what="the Docker engine ready",
        context=lambda: log.read_text("utf-8", "replace")[-2000:],
    )


def install_tools() -> None:
    """Install what makes images without a registry, when this is root on Debian and something of it is missing."""
    _install()


def _install() -> None:
    packages = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not packages:
        return
    command = f"apt-get install --yes --no-install-recommends {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"a cluster's tooling ({', '.join(packages)}; or KUBECONFIG of an existing cluster)", command)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "--quiet", environment=quiet, timeout_s=INSTALL_TIMEOUT_S)
    run(*command.split(), environment=quiet, timeout_s=INSTALL_TIMEOUT_S)


def _runtime() -> list[str]:
    """Return the engine's options for a machine that may give its containers less than they ask for."""
    if _may_give_all():
        return []
    if shutil.which("jq") is None:
        raise LabError("jq is missing, which the containers' runtime needs here: apt-get install --yes jq")
    # The engine outlives this checkout as well.
    runtime = shutil.copy(HELD_RUNTIME, cache_folder())
    return [f"--add-runtime=held={runtime}", "--default-runtime=held"]


def _may_give_all() -> bool:
    status = Path("/proc/self/status").read_text("ascii")
    bounding = next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:"))
    return bool(int(bounding, 16) >> SYS_RESOURCE & 1)
