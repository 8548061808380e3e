"""Pods' network and storage on nodes of a self-built image: a bridge on each node, a route to every other, volumes bound to nodes.

kind's own network and storage come as images; here they are plain files and kernel routes. A NetworkPolicy is accepted and not
enforced.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from e2e.command import run
from e2e.kube import Kube
from lab.processes.waiting import wait_until

POD_RANGE = "10.244.0.0/16"
"""kind's default: every node has a part of it."""

STORAGE_CLASS = "standard"
"""The name of kind's own default class."""

VOLUMES_PER_NODE = 16
"""A volume is used once: enough for every install, scale-out and reinstall of a run."""

VOLUME_SIZE = "16Gi"

VOLUME_FOLDER = "/var/local/volumes"

VOLUME_BYTES = "512m"
"""Real size of a volume: it is in memory, so that a full disk does not fill this machine's disk."""

MOUNT_ALL = (
    f"for number in $(seq 0 {VOLUMES_PER_NODE - 1}); do folder={VOLUME_FOLDER}/$number; mkdir --parents $folder; "
    f"mount --types tmpfs --options size={VOLUME_BYTES} steward-volume $folder; done"
)

RANGES_TIMEOUT_S = 60


class Node(NamedTuple):
    """A node: its part of the pods' addresses and its own address."""

    name: str
    pod_range: str
    address: str


def configure(kube: Kube) -> None:
    """Give every node its bridge and routes, and the cluster its volumes."""
    nodes = _nodes(kube)
    for node in nodes:
        _bridge(node)
        for other in nodes:
            if other != node:
                run("docker", "exec", node.name, "ip", "route", "replace", other.pod_range, "via", other.address)
    _storage(kube, nodes)


def _nodes(kube: Kube) -> list[Node]:
    found: list[dict[str, Any]] = []

    def ranges_given() -> bool:
        found[:] = kube.items("nodes")
        return bool(found) and all("podCIDR" in node["spec"] for node in found)

    wait_until(ranges_given, timeout_s=RANGES_TIMEOUT_S, what="a range of addresses for every node")
    return [
        Node(
            node["metadata"]["name"],
            node["spec"]["podCIDR"],
            next(address["address"] for address in node["status"]["addresses"] if address["type"] == "InternalIP"),
        )
        for node in found
    ]


def _bridge(node: Node) -> None:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": node.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    content = json.dumps({"cniVersion": "0.4.0", "name": "bridge", "plugins": plugins})
    into_file = "mkdir -p /etc/cni/net.d && cat > /etc/cni/net.d/10-bridge.conflist"
    run("docker", "exec", "--interactive", node.name, "sh", "-c", into_file, stdin=content)
    outwards = f"POSTROUTING --source {POD_RANGE} ! --destination {POD_RANGE} ! --out-interface cni0 --jump MASQUERADE"
    run("docker", "exec", node.name, "iptables", "--table", "nat", "--append", *outwards.split())


def _storage(kube: Kube, nodes: list[Node]) -> None:
    """Replace kind's class of host paths by volumes that know their node: a pod that comes back finds its data."""
    kube.run("delete", "storageclass", STORAGE_CLASS, "--ignore-not-found")
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    kube.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS, "annotations": default},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        *(_volume(node, number) for node in nodes for number in range(VOLUMES_PER_NODE)),
    )
    for node in nodes:
        run("docker", "exec", node.name, "sh", "-ec", MOUNT_ALL)


def _volume(node: Node, number: int) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{node.name}-{number}"},
        "spec": {
            "storageClassName": STORAGE_CLASS,
            "capacity": {"storage": VOLUME_SIZE},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"{VOLUME_FOLDER}/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
