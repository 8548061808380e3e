"""Builds of the Kubernetes API server, kubectl and etcd from their Go modules.

`lab/downloads/kube/go.mod` names the three programs as tools, with the version of every module; `go.sum` has their checksums. Nothing that runs
pods is built.
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import find_tool
from lab.processes.commands import run_to_end

KUBERNETES_VERSION = "v1.34.2"
"""As in lab/downloads/kube/go.mod; the programs report it as their own version."""

MODULE_FOLDER = Path(__file__).parent / "kube"

PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}

SELF_UPDATING_GO = (1, 21)
"""Since this version the go command downloads the toolchain that a module requires."""

TOOLCHAIN_VERSION = "1.24.9"
"""Toolchain that is downloaded for an older go command; go.mod requires 1.24."""

BUILD_TIMEOUT_S = 3600
"""Ten minutes on two cores; long enough for a busy or smaller machine."""


def build_kubernetes(folder: Path) -> None:
    """Build the three programs into `folder`; raises `Missing` without Go, `LabError` when the build fails."""
    build_programs(MODULE_FOLDER, PROGRAMS, folder, linker_flags=kubernetes_stamps())


def build_programs(
    module_folder: Path, programs: Mapping[str, str], folder: Path, *, linker_flags: Sequence[str] = ()
) -> None:
    """Build `programs` (file name -> package) of the module in `module_folder` into `folder`, in the versions of its go.sum.

    Raises `Missing` without Go, `LabError` when the build fails.
    """
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOWORK": "off"}
    go = _recent_go(environment)
    flags = " ".join(["-s -w", *linker_flags])
    for program, package in programs.items():
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", str(folder / program), package]
        _run(command, environment, folder=module_folder)


def kubernetes_stamps() -> list[str]:
    """Return the linker flags that make Kubernetes' programs report their version."""
    package = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return [f"-X {package}.{name}={value}" for name, value in stamps.items()]


def module_sources(module: str) -> Path:
    """Return the folder with the files of a module, given as `path@version`; it is downloaded when it is not there."""
    environment = {**os.environ, "GOTOOLCHAIN": "auto", "GOWORK": "off"}
    go = find_tool("go", purpose=f"downloads {module}", install="apt-get install --yes golang-go")
    # Outside of this project's modules, whose files an older go command cannot read.
    answer = _run([go, "mod", "download", "-json", module], environment, folder=Path(tempfile.gettempdir()))
    return Path(json.loads(answer)["Dir"])


def _recent_go(environment: dict[str, str]) -> str:
    go = find_tool("go", purpose="builds the Kubernetes API server and etcd", install="apt-get install --yes golang-go")
    found = re.search(r"go(\d+)\.(\d+)", _run([go, "version"], environment))
    if found is None or (int(found[1]), int(found[2])) >= SELF_UPDATING_GO:
        return go
    return _fetched_go(environment)


def _fetched_go(environment: dict[str, str]) -> str:
    """Return the go command of a newer toolchain, which is published as a module."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    module = f"golang.org/toolchain@v0.0.1-go{TOOLCHAIN_VERSION}.linux-{machine}"
    root = module_sources(module)
    # Files of a module are stored without execute permission.
    for path in [*(root / "bin").iterdir(), *(root / "pkg" / "tool").rglob("*")]:
        if path.is_file():
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    environment["GOROOT"] = str(root)
    return str(root / "bin" / "go")


def _run(command: list[str], environment: dict[str, str], *, folder: Path = MODULE_FOLDER) -> str:
    return run_to_end(command, folder=folder, environment=environment, timeout_s=BUILD_TIMEOUT_S)
