"""The build of the Kubernetes API server: which commands are run, with Go of any age."""

from pathlib import Path

import pytest

from lab.downloads.go_build import KUBERNETES_VERSION, MODULE_FOLDER, PROGRAMS, TOOLCHAIN_VERSION, build_kubernetes
from lab.errors import LabError

FAKE = """#!/bin/sh
echo "$0 $*" >> {log}
case "$1" in
  version) echo "go version go{version} linux/amd64" ;;
  mod) echo '{{"Dir": "{toolchain}"}}' ;;
  build) {build} ;;
esac
"""


def fake_go(folder: Path, version: str, *, toolchain: Path | None = None, build: str = "true") -> Path:
    """A go command in a folder of its own that records its arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "asked"
    (folder / "go").write_text(FAKE.format(log=log, version=version, toolchain=toolchain, build=build))
    (folder / "go").chmod(0o755)
    return log


def test_three_programs_are_built_with_their_version_stamped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server without a version of its own refuses to start."""
    log = fake_go(tmp_path / "bin", "1.24.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    build_kubernetes(tmp_path)

    built = [line for line in log.read_text().splitlines() if " build " in line]
    assert [f"-o {tmp_path / name} {path}" for name, path in PROGRAMS.items()] == [
        line[line.index("-o ") :] for line in built
    ]
    assert all(f"gitVersion={KUBERNETES_VERSION}" in line for line in built)


def test_the_versions_are_those_of_the_module_file() -> None:
    """go.mod decides; versions elsewhere are equal to it."""
    module = (MODULE_FOLDER / "go.mod").read_text()

    assert f"k8s.io/kubernetes {KUBERNETES_VERSION}" in module
    assert all(f"\t{path}\n" in module for path in PROGRAMS.values())


def test_a_go_that_cannot_update_itself_fetches_a_newer_one_as_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12 has Go 1.19, which cannot read the required Go version from a module."""
    toolchain = tmp_path / "toolchain"
    newer = fake_go(toolchain / "bin", TOOLCHAIN_VERSION)
    (toolchain / "bin" / "go").chmod(0o444)  # as extracted from a module
    (toolchain / "pkg" / "tool").mkdir(parents=True)
    log = fake_go(tmp_path / "bin", "1.19.8", toolchain=toolchain)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    build_kubernetes(tmp_path)

    assert f"golang.org/toolchain@v0.0.1-go{TOOLCHAIN_VERSION}.linux-" in log.read_text()
    assert " build " not in log.read_text()
    assert len(PROGRAMS) == newer.read_text().count(" build ")


def test_a_failed_build_shows_the_output_of_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, a full disk: Go's output has the reason."""
    fake_go(tmp_path / "bin", "1.24.1", build="echo no space left on device >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")

    with pytest.raises(LabError, match="no space left on device"):
        build_kubernetes(tmp_path)


def test_the_checksums_are_there_for_the_build_to_compare() -> None:
    """Every module is the chosen one, from any proxy."""
    assert "k8s.io/kubernetes " + KUBERNETES_VERSION + " h1:" in (MODULE_FOLDER / "go.sum").read_text()
