"""Sources of etcd, kube-apiserver and kubectl."""

from pathlib import Path

import pytest

from lab.downloads import kube_binaries
from lab.errors import Missing

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")


def programs_in(folder: Path, names: tuple[str, ...] = PROGRAMS) -> Path:
    """A folder with these programs."""
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.fixture(autouse=True)
def no_other_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither assets nor PATH, a packed copy or a cache."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kube_binaries, "PACKED_FOLDER", tmp_path / "none")


def test_the_assets_folder_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual variable of tests of controllers."""
    assets, path = programs_in(tmp_path / "assets"), programs_in(tmp_path / "path")
    monkeypatch.setenv("PATH", str(path))
    assert kube_binaries.kube_binaries().source == "PATH"

    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    found = kube_binaries.kube_binaries()
    assert ("KUBEBUILDER_ASSETS", str(assets / "etcd")) == (found.source, found.etcd)


def test_a_source_that_lacks_one_program_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Often only kubectl is on PATH; programs of different versions are not mixed."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs_in(tmp_path / "assets", ("kubectl",))))
    monkeypatch.setenv("PATH", str(programs_in(tmp_path / "path")))

    assert kube_binaries.kube_binaries().source == "PATH"


def test_without_any_source_and_without_go_the_command_that_installs_it_is_named() -> None:
    """The command that installs what is missing."""
    with pytest.raises(Missing) as missing:
        kube_binaries.kube_binaries()

    assert missing.value.install == "apt-get install --yes golang-go"


def test_what_was_built_once_is_found_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build takes minutes."""
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        for name in PROGRAMS:
            (folder / name).touch(mode=0o755)

    monkeypatch.setattr(kube_binaries, "build_kubernetes", build)

    assert kube_binaries.kube_binaries() == kube_binaries.kube_binaries()
    assert len(built) == 1
