"""The image of Spark's drivers and executors, by far the largest: built during the first tests, and loaded into one node."""

from __future__ import annotations

from e2e.command import run
from e2e.images import LOAD_TIMEOUT_S, ROOT
from e2e.kind import cluster
from e2e.kind.node_image import build
from e2e.kind.programs import clients
from e2e.kube import Kube, kind_name

SPARK = "steward-spark:dev"

DOCKERFILE = ROOT / "images" / "spark" / "Dockerfile"


def put_onto_a_node(kube: Kube) -> str | None:
    """Build the image, put it onto one node of a kind cluster, and return that node's name; None where nodes pull it by its name."""
    name = kind_name(kube)
    if name is None:
        return None
    build(SPARK, DOCKERFILE, ROOT, arguments=[f"BASE={cluster.prepare()}"])
    node = max(str(node["metadata"]["name"]) for node in kube.items("nodes"))
    run(clients().kind, "load", "docker-image", SPARK, f"--name={name}", f"--nodes={node}", timeout_s=LOAD_TIMEOUT_S)
    return node
