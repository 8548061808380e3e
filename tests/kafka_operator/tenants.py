"""Resources of namespace `team-a` that refer to Cluster `shop/main`, each in one line."""

from __future__ import annotations

from typing import Any

from kafka_operator import kinds
from reconciler.names import Key
from tests.kafka_operator.makers import raw_cluster, raw_election, raw_reassignment, raw_topic
from tests.kafka_operator.world import World

TEAM = "team-a"
MAIN = {"name": "main", "namespace": "shop"}


def tenant_topic(name: str, namespace: str = TEAM, **spec: Any) -> dict[str, Any]:
    """Return a Topic of another namespace as a user applies it."""
    return _moved(raw_topic(name, **{"clusterRef": MAIN, **spec}), namespace)


def tenant_move(name: str, namespace: str = TEAM, **spec: Any) -> dict[str, Any]:
    """Return a Reassignment of another namespace as a user applies it."""
    return _moved(raw_reassignment(name, **{"clusterRef": MAIN, **spec}), namespace)


def tenant_election(name: str, namespace: str = TEAM, **spec: Any) -> dict[str, Any]:
    """Return an Election of another namespace as a user applies it."""
    return _moved(raw_election(name, **{"clusterRef": MAIN, **spec}), namespace)


def tenant_cluster(name: str, *servers: str, namespace: str = TEAM, **spec: Any) -> dict[str, Any]:
    """Return a Cluster of another namespace as a user applies it."""
    return _moved(raw_cluster(name, *servers, **spec), namespace)


def topic_key(name: str, namespace: str = TEAM) -> Key:
    """Return the key of a Topic."""
    return Key(kinds.TOPIC, namespace, name)


def move_key(name: str, namespace: str = TEAM) -> Key:
    """Return the key of a Reassignment."""
    return Key(kinds.REASSIGNMENT, namespace, name)


def state_of(world: World, key: Key) -> str | None:
    """Return `status.state`."""
    found: str | None = world.kube.objects[key].get("status", {}).get("state")
    return found


def allow(world: World, *rules: dict[str, Any], **spec: Any) -> None:
    """Apply Cluster `shop/main` with these rules of allowedNamespaces; no rule takes every right away."""
    more = {"allowedNamespaces": list(rules)} if rules else {}
    world.kube.apply(raw_cluster(**more, **spec))


def _moved(raw: dict[str, Any], namespace: str) -> dict[str, Any]:
    raw["metadata"]["namespace"] = namespace
    return raw
