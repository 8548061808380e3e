"""Clusters for one test module whose brokers differ from those of the shared cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import NewTopic

from kafka_wire import ApiKey, Body
from kafka_wire.net.client import Connection
from lab.peers.cluster import kafka_cluster
from lab.peers.kafka import INTERNAL
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import metadata_of, wait_until_converged


@contextmanager
def held_cluster(brokers: Sequence[int], *, arguments: Sequence[str] = (), **how: Any) -> Iterator[Held]:
    """Yield a cluster under a Steward controller; `arguments` are those of the controller, `how` is as for `kafka_cluster`."""
    with lab_folder() as folder, kafka_cluster(brokers, start=False, chroot=CHROOT, folder=folder, **how) as cluster:
        controller = StewardController(cluster.zookeeper_connect, folder, arguments=arguments)
        try:
            controller.start()
            cluster.start_brokers()
            held = Held(cluster, controller)
            wait_until_converged(held, "the start")
            yield held
            vars(held).pop("admin", None)  # it would try to reach the cluster until the end of the test session
        finally:
            controller.close()


def on(topic: str, *assignment: list[int], **config: str) -> NewTopic:
    """A topic with this assignment."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    return NewTopic(topic, num_partitions=len(assignment), replica_assignment=list(assignment), config=named)


def create_on(held: Held, topic: str, *assignment: list[int], **config: str) -> None:
    """Create a topic with this assignment, and wait until all replicas are in sync."""
    new = on(topic, *assignment, **config)
    wait_until(lambda: held._created(new), timeout_s=PATIENCE_S, what=f"topic {topic}")
    held.cluster.wait_until_in_sync(topic)


async def call(address: str, key: ApiKey, body: Body, version: int | None = None) -> Body:
    """Send one request to one node, in the highest version of both or in a given one."""
    host, _, port = address.rpartition(":")
    connection = await Connection.open(host, int(port), client_id="tests")
    try:
        return await connection.call(key, body, version=version)
    finally:
        await connection.close()


async def alter_quota(address: str, entity: dict[str, str | None], key: str, value: float | None) -> None:
    """Set a quota through a node, or (None) remove it."""
    named = [{"entity_type": entity_type, "entity_name": name} for entity_type, name in entity.items()]
    op = {"key": key, "value": value or 0.0, "remove": value is None}
    body = {"entries": [{"entity": named, "ops": [op]}], "validate_only": False}
    answer = await call(address, ApiKey.ALTER_CLIENT_QUOTAS, body)
    assert [entry["error_code"] for entry in answer["entries"]] == [0], answer


def metadata_by(held: Held, broker_id: int, topic: str) -> list[dict[str, Any]]:
    """Ask one broker for the partitions of a topic, in order, by Metadata."""
    answer = asyncio.run(metadata_of(held.cluster.broker(broker_id).ports[INTERNAL]))
    assert answer is not None, f"broker {broker_id} does not answer"
    (found,) = [one for one in answer["topics"] if one["name"] == topic]
    return sorted(found["partitions"], key=lambda one: one["partition_index"])
