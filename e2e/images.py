"""The product's two images: build them from the checkout, and hand them to a cluster's nodes."""

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

DOCKERFILES: Mapping[str, Path] = {
    STEWARD: ROOT / "images" / "steward" / "Dockerfile",
    KAFKA: ROOT / "images" / "kafka" / "Dockerfile",
}

LOAD_TIMEOUT_S = 600


def build_images(base: str) -> None:
    """Build both on the image `base`, side by side: each waits for package registries most of the time."""
    with ThreadPoolExecutor(len(DOCKERFILES)) as builders:
        building = [
            builders.submit(build, image, dockerfile, ROOT, arguments=[f"BASE={base}"])
            for image, dockerfile in DOCKERFILES.items()
        ]
    for built in building:
        built.result()


def load_images(cluster: str) -> None:
    """Put both into every node of a kind cluster."""
    run(clients().kind, "load", "docker-image", *DOCKERFILES, f"--name={cluster}", timeout_s=LOAD_TIMEOUT_S)
