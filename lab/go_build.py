"""Build the Kubernetes API server, kubectl and etcd from their Go modules.

`lab/kube/go.mod` names the three programs as tools, with every module's version; `go.sum` says what each must be. What it leaves
out: everything of Kubernetes that runs pods.
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import subprocess
import tempfile
from pathlib import Path

from lab.missing import LabError, find_tool

KUBERNETES_VERSION = "v1.34.2"
"""As in lab/kube/go.mod; the programs report it as their own version."""

MODULE_FOLDER = Path(__file__).parent / "kube"

PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}

SELF_UPDATING_GO = (1, 21)
"""From here on the go command fetches the toolchain that a module asks for."""

TOOLCHAIN_VERSION = "1.24.9"
"""What an older go command is made to fetch: go.mod's own line needs 1.24."""

BUILD_TIMEOUT_S = 3600
"""Ten minutes on two cores; a busy or smaller machine gets there too."""


def build_kubernetes(folder: Path) -> None:
    """Build the three programs into `folder`; raises `Missing` without Go, `LabError` when the build fails."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOWORK": "off"}
    go = _recent_go(environment)
    package = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in stamps.items())])
    for program, path in PROGRAMS.items():
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", str(folder / program), path]
        _run(command, environment)


def _recent_go(environment: dict[str, str]) -> str:
    go = find_tool("go", purpose="builds the Kubernetes API server and etcd", install="apt-get install --yes golang-go")
    found = re.search(r"go(\d+)\.(\d+)", _run([go, "version"], environment))
    if found is None or (int(found[1]), int(found[2])) >= SELF_UPDATING_GO:
        return go
    return _fetched_go(go, environment)


def _fetched_go(go: str, environment: dict[str, str]) -> str:
    """Return the go command of a newer toolchain, which is published as a module like any other."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    module = f"golang.org/toolchain@v0.0.1-go{TOOLCHAIN_VERSION}.linux-{machine}"
    # From a folder outside of our module, whose file the older command cannot read.
    answer = _run([go, "mod", "download", "-json", module], environment, folder=Path(tempfile.gettempdir()))
    root = Path(json.loads(answer)["Dir"])
    # Files of a module are stored without the right to run them.
    for path in [*(root / "bin").iterdir(), *(root / "pkg" / "tool").rglob("*")]:
        if path.is_file():
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    environment["GOROOT"] = str(root)
    return str(root / "bin" / "go")


def _run(command: list[str], environment: dict[str, str], *, folder: Path = MODULE_FOLDER) -> str:
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=BUILD_TIMEOUT_S,
    )
    if done.returncode:
        raise LabError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout
