"""The chart as a package, and rendered as one manifest that installs only the operator."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.release.commands import ROOT, run
from reconciler.names import GROUP
from spark_operator.kinds import KINDS as SPARK_KINDS

CHART = ROOT / "charts" / "steward"

KUBE_VERSION = "1.34.2"
"""helm reads the version from a server; without one it must be given."""

NAMESPACE = "steward"
"""Namespace of the manifest."""

OPERATOR_ONLY: Mapping[str, Any] = {
    "zookeeper": {"enabled": False},
    "brokers": {"enabled": False},
    "controllers": {"enabled": False},
}
"""Values with which the chart installs only the operator."""

MANIFEST_VALUES: Mapping[str, Any] = {
    **OPERATOR_ONLY,
    # Clusters are created later, with Secrets of names that are not known here; the namespace has no others.
    "operator": {"secrets": ["*"]},
    # The hook is run by helm only.
    "uninstall": {"releaseResources": False},
}

DOCUMENT = re.compile(r"^---\n", re.MULTILINE)
"""Separator of the documents that helm renders."""

MANAGED_BY_HELM = "app.kubernetes.io/managed-by: Helm\n"

NAMESPACE_MANIFEST = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    app.kubernetes.io/name: steward
    pod-security.kubernetes.io/enforce: restricted
"""


def package_chart(helm: Path, folder: Path, epoch_s: int) -> Path:
    """Write the chart's package and return its path; packages of the same files and time are equal byte for byte."""
    with tempfile.TemporaryDirectory() as packed:
        run(helm, "package", CHART, "--destination", packed)
        (made,) = Path(packed).iterdir()
        package = folder / made.name
        package.write_bytes(normalized(made.read_bytes(), epoch_s))
    return package


def normalized(archive: bytes, epoch_s: int) -> bytes:
    """Return a .tar.gz with the same files, sorted, with one time, owner and mode: helm writes the current time."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as source,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=epoch_s) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=_order):
            plain = tarfile.TarInfo(member.name)
            plain.size, plain.mtime, plain.mode = member.size, epoch_s, 0o644
            target.addfile(plain, source.extractfile(member))
    return packed.getvalue()


def _order(member: tarfile.TarInfo) -> tuple[bool, str]:
    """Chart.yaml first: helm reads a package until it has found it."""
    return not member.name.endswith("/Chart.yaml"), member.name


def operator_manifest(helm: Path, chart: Path, image: Mapping[str, str]) -> str:
    """Return the CRDs, the namespace and the operator, rendered from the chart or its package; `image` is as in the chart's values.

    It has no CRDs of the Spark operator, which these values do not enable.
    """
    values = {**MANIFEST_VALUES, "image": image}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        options = (f"--namespace={NAMESPACE}", f"--kube-version={KUBE_VERSION}", "--include-crds")
        rendered = run(helm, "template", "steward", chart, *options, f"--values={file.name}")
    documents = [document for document in DOCUMENT.split(rendered) if not _is_spark_definition(document)]
    objects = "---\n".join(documents)
    lines = "".join(line for line in objects.splitlines(keepends=True) if line.lstrip() != MANAGED_BY_HELM)
    return f"{NAMESPACE_MANIFEST}{lines}"


def _is_spark_definition(document: str) -> bool:
    """Return whether a document of the manifest is the CRD of a kind of the Spark operator."""
    return any(f"\n  name: {kind.plural}.{GROUP}\n" in document for kind in SPARK_KINDS)
