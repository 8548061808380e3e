"""The product's two images, and those of the last release: built from the checkout, and loaded into a cluster's nodes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.command import run
from e2e.kind.node_image import build
from e2e.kind.programs import clients

ROOT = Path(__file__).resolve().parents[1]

STEWARD = "steward:dev"

KAFKA = "steward-kafka:dev"

PREVIOUS = "steward:previous"
"""The last release's programs: a test of upgrades begins with its chart and this image."""

DOCKERFILES: Mapping[str, Path] = {
    STEWARD: ROOT / "images" / "steward" / "Dockerfile",
    KAFKA: ROOT / "images" / "kafka" / "Dockerfile",
}

PREVIOUS_DOCKERFILE = ROOT / "e2e" / "previous" / "Dockerfile"

ARGUMENTS: Mapping[str, list[str]] = {STEWARD: ["EXTRA_PACKAGES=kafka-python"]}
"""An independent client for the programs in pods, which is also the client of the last release's operator."""

LOAD_TIMEOUT_S = 600


def build_images(base: str) -> None:
    """Build both on the image `base`, side by side: each waits for package registries most of the time. The last release's follows."""
    with ThreadPoolExecutor(len(DOCKERFILES)) as builders:
        building = [
            builders.submit(build, image, dockerfile, ROOT, arguments=[f"BASE={base}", *ARGUMENTS.get(image, ())])
            for image, dockerfile in DOCKERFILES.items()
        ]
    for built in building:
        built.result()
    build(PREVIOUS, PREVIOUS_DOCKERFILE, PREVIOUS_DOCKERFILE.parent, arguments=[f"BASE={STEWARD}"])


def load_images(cluster: str) -> None:
    """Put all into every node of a kind cluster; layers that they share are sent once."""
    run(clients().kind, "load", "docker-image", *DOCKERFILES, PREVIOUS, f"--name={cluster}", timeout_s=LOAD_TIMEOUT_S)
