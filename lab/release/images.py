"""Definition of the images for two architectures, for `docker buildx bake`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

IMAGES: Mapping[str, str] = {
    "steward": "Operator and controllers of Steward",
    "steward-kafka": "Brokers of Kafka 3.9 in ZooKeeper mode, and ZooKeeper",
    "steward-spark": "Jobs of Steward's balance analytics on Spark",
}
"""Name -> description. The Dockerfile is in the folder of the name without `steward-`."""

PLATFORMS = ("linux/amd64", "linux/arm64")


def bake_file(version: str, registry: str, revision: str, epoch_s: int) -> dict[str, Any]:
    """Return the file's content: each image is pushed with provenance and a bill of materials, and its layers have the time `epoch_s`."""
    return {
        "group": {"default": {"targets": list(IMAGES)}},
        "target": {name: _target(name, version, registry, revision, epoch_s) for name in IMAGES},
    }


def _target(name: str, version: str, registry: str, revision: str, epoch_s: int) -> dict[str, Any]:
    return {
        "context": ".",
        "dockerfile": f"images/{name.removeprefix('steward-')}/Dockerfile",
        "platforms": list(PLATFORMS),
        "args": {"SOURCE_DATE_EPOCH": str(epoch_s)},
        "tags": [f"{registry}/{name}:{version}" if registry else f"{name}:{version}"],
        "labels": {
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.description": IMAGES[name],
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.revision": revision,
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
        "attest": ["type=sbom", "type=provenance,mode=max"],
        "output": ["type=image,push=true,rewrite-timestamp=true"],
    }
