"""Files of a release: the chart's package, the manifest for `kubectl apply`, the definition of the images, checksums."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_operator.kinds import KINDS
from lab.downloads.helm import helm
from lab.peers.kubernetes import KubernetesApi
from lab.release.__main__ import write_checksums
from lab.release.chart import NAMESPACE, normalized, operator_manifest, package_chart
from lab.release.commands import ROOT
from lab.release.images import PLATFORMS, bake_file
from reconciler.names import GROUP
from tests.charts.rendering import one
from tests.charts.rights import granted

COMMIT_TIME_S = 1_700_000_000
REGISTRY = "registry.example.org/kafka"


def archive(times_s: dict[str, int]) -> bytes:
    """Return a .tar.gz with a file for each name, in this order, with these times."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as target:
        for name, time_s in times_s.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(name), time_s
            target.addfile(member, io.BytesIO(name.encode("ascii")))
    return packed.getvalue()


def test_archives_of_the_same_files_are_equal_whenever_they_were_made() -> None:
    """https://reproducible-builds.org/docs/archives: one order, one time, one owner."""
    names = ("steward/values.yaml", "steward/Chart.yaml", "steward/crds/topics.yaml")
    first = normalized(archive(dict.fromkeys(names, 1)), COMMIT_TIME_S)
    second = normalized(archive({name: number for number, name in enumerate(reversed(names))}), COMMIT_TIME_S)

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as opened:
        assert opened.getnames() == ["steward/Chart.yaml", "steward/crds/topics.yaml", "steward/values.yaml"]
        assert {member.mtime for member in opened} == {COMMIT_TIME_S}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart's package."""
    return package_chart(helm(), tmp_path_factory.mktemp("release"), COMMIT_TIME_S)


@pytest.fixture(scope="module")
def manifest(package: Path) -> list[dict[str, Any]]:
    """The objects of operator.yaml."""
    text = operator_manifest(helm(), package, {"repository": f"{REGISTRY}/steward"})
    return [item for item in yaml.load_all(text, yaml.CSafeLoader) if item]


@pytest.mark.helm
def test_two_packages_of_the_chart_are_equal(package: Path, tmp_path: Path) -> None:
    """Helm itself writes the current time into each."""
    assert package_chart(helm(), tmp_path, COMMIT_TIME_S).read_bytes() == package.read_bytes()


@pytest.mark.helm
def test_the_package_has_the_files_of_the_crds_and_not_a_link(package: Path) -> None:
    """docs/adr/0032."""
    with tarfile.open(package) as opened:
        packed = {member.name: member.isfile() for member in opened if member.name.startswith("steward/crds")}

    assert packed == {f"steward/crds/{path.name}": True for path in (ROOT / "crds").iterdir()}


@pytest.mark.helm
def test_the_manifest_installs_only_the_operator(manifest: list[dict[str, Any]]) -> None:
    """Namespace first, then the CRDs of the Kafka operator; no hooks, which only helm runs."""
    kinds = [item["kind"] for item in manifest]
    definitions = len(KINDS)
    pod = one(manifest, "Deployment", "steward-operator")["spec"]["template"]["spec"]

    assert kinds[: definitions + 1] == ["Namespace", *["CustomResourceDefinition"] * definitions]
    assert {item["metadata"]["name"] for item in manifest if item["kind"] == "CustomResourceDefinition"} == {
        f"{kind.plural}.{GROUP}" for kind in KINDS
    }
    assert {"StatefulSet", "Job", "Pod", "Cluster"}.isdisjoint(kinds)
    assert "helm.sh/hook" not in json.dumps(manifest)
    assert "managed-by" not in json.dumps(manifest)
    assert pod["containers"][0]["image"].startswith(f"{REGISTRY}/steward:")
    assert ("get", "", "secrets", NAMESPACE) in granted(manifest, "steward-operator")


@pytest.mark.helm
@pytest.mark.kubernetes
@pytest.mark.shows("F39")
def test_the_api_server_accepts_the_manifest(api: KubernetesApi, manifest: list[dict[str, Any]]) -> None:
    """`kubectl apply --filename operator.yaml`. A dry run needs the namespace to exist."""
    api.kubectl("apply", "--filename=-", stdin=json.dumps(manifest[0]), check=True)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest})

    done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=listed)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(manifest)
    api.kubectl("delete", "namespace", NAMESPACE, "--wait=false", check=True)


@pytest.mark.parametrize("name", ["steward", "steward-kafka", "steward-spark"])
def test_an_image_is_built_for_two_architectures_from_files_that_reach_the_builder(name: str) -> None:
    """The file for `docker buildx bake`: Dockerfile, tag and platforms; .dockerignore lets through all that is copied."""
    target = bake_file("1.2.3", REGISTRY, "abc", COMMIT_TIME_S)["target"][name]
    dockerfile = (ROOT / target["dockerfile"]).read_text(encoding="utf-8")
    copied = {
        path
        for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, re.MULTILINE)
        for path in line.split()[:-1]
        if path != "."
    }
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert (target["tags"], target["platforms"]) == ([f"{REGISTRY}/{name}:1.2.3"], ["linux/amd64", "linux/arm64"])
    assert target["platforms"] == list(PLATFORMS)
    assert target["args"] == {"SOURCE_DATE_EPOCH": str(COMMIT_TIME_S)}
    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert [
        path for path in copied if not any(path == root or path.startswith(f"{root}/") for root in let_through)
    ] == []


def test_checksums_are_in_the_format_of_sha256sum(tmp_path: Path) -> None:
    """One line for each file, by name; the list has no line for itself, also when it is written again."""
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    for _ in range(2):
        write_checksums(tmp_path)

    first, second = (hashlib.sha256(content).hexdigest() for content in (b"1", b"2"))
    assert (tmp_path / "SHA256SUMS").read_text() == f"{first}  a\n{second}  b\n"
