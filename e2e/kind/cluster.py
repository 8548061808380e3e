"""Creation and deletion of a cluster of three nodes in three racks, with pods on all of them."""

from __future__ import annotations

import json
from pathlib import Path

from e2e.command import attempt, run
from e2e.kind.engine import engine_answers, ensure_engine, install_tools
from e2e.kind.network import configure
from e2e.kind.node_image import ensure_base_image, ensure_node_image
from e2e.kind.programs import Clients, clients, clients_on_path
from e2e.kind.versions import BASE_IMAGE, NODE_IMAGE
from e2e.kube import Kube

NAME = "steward-e2e"

RACKS = ("rack-a", "rack-b", "rack-c")

PULLED_BASE = "debian:bookworm-slim"
"""The base of the product's images where images can be pulled."""

PULL_TIMEOUT_S = 120

CREATE_TIMEOUT_S = 600

READY_TIMEOUT_S = 180


def can_pull() -> bool:
    """Whether plain kind is possible: an engine answers, kind is on PATH, and images can be pulled."""
    if not engine_answers() or clients_on_path() is None:
        return False
    return attempt("docker", "pull", "--quiet", PULLED_BASE, timeout_s=PULL_TIMEOUT_S).returncode == 0


def prepare() -> str:
    """Make an engine and an image to build the product's images on, and return that image's name; both outlive a cluster."""
    if can_pull():
        return PULLED_BASE
    ensure_engine()
    install_tools()
    ensure_base_image()
    return BASE_IMAGE


def create(kubeconfig: Path, *, own_image: bool, name: str = NAME) -> Kube:
    """Make the cluster, write its kubeconfig and return it with all nodes ready.

    `own_image` is for machines without a registry: nodes of an image that is built here, with a network that is configured here.
    """
    if own_image:
        ensure_node_image()
    programs = clients()
    configuration = kubeconfig.with_name(f"{name}.json")
    configuration.write_text(json.dumps(_configuration(own_image=own_image)), encoding="ascii")
    image = [f"--image={NODE_IMAGE}"] if own_image else []
    command = ["create", "cluster", f"--name={name}", f"--config={configuration}", f"--kubeconfig={kubeconfig}", *image]
    run(programs.kind, *command, timeout_s=CREATE_TIMEOUT_S)
    kube = Kube(programs.kubectl, kubeconfig)
    kube.attempt("taint", "nodes", "--all", "node-role.kubernetes.io/control-plane-")
    if own_image:
        configure(kube)
    kube.run(
        "wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY_TIMEOUT_S}s", timeout_s=CREATE_TIMEOUT_S
    )
    kube.within("kube-system").wait_rolled_out("deployment/coredns", timeout_s=READY_TIMEOUT_S)
    return kube


def exists(programs: Clients, name: str = NAME) -> bool:
    """Whether there is a cluster of this name."""
    return name in run(programs.kind, "get", "clusters").split()


def delete(kubeconfig: Path, name: str = NAME) -> None:
    """Delete the cluster; nothing happens where there is none."""
    run(clients().kind, "delete", "cluster", f"--name={name}", f"--kubeconfig={kubeconfig}", timeout_s=CREATE_TIMEOUT_S)


def _configuration(*, own_image: bool) -> dict[str, object]:
    nodes = [
        {"role": role, "labels": {"topology.kubernetes.io/zone": rack}}
        for role, rack in zip(("control-plane", "worker", "worker"), RACKS, strict=True)
    ]
    patch = "kind: KubeletConfiguration\nfailCgroupV1: false\n"  # machines with the older cgroups serve as well
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {"disableDefaultCNI": own_image},
        "kubeadmConfigPatches": [patch],
        "nodes": nodes,
    }
