"""Clusters of a test module's own, for brokers that the shared ones are not like: under our controller, or under two of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import NewTopic

from lab.cluster import kafka_cluster
from lab.folder import lab_folder
from lab.kafka import INTERNAL
from lab.steward import StewardController
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import metadata_of, wait_until_converged


@contextmanager
def held_cluster(brokers: Sequence[int], *, arguments: Sequence[str] = (), **how: Any) -> Iterator[Held]:
    """Yield a cluster that our controller holds; `arguments` are the controller's, `how` is as for `kafka_cluster`."""
    with lab_folder() as folder, kafka_cluster(brokers, start=False, chroot=CHROOT, folder=folder, **how) as cluster:
        controller = StewardController(cluster.zookeeper_connect, folder, arguments=arguments)
        try:
            controller.start()
            cluster.start_brokers()
            held = Held(cluster, controller)
            wait_until_converged(held, "the start")
            yield held
            vars(held).pop("admin", None)  # it would look for the cluster for as long as the test session lasts
        finally:
            controller.close()


def on(topic: str, *assignment: list[int], **config: str) -> NewTopic:
    """A topic in a known place."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    return NewTopic(topic, num_partitions=len(assignment), replica_assignment=list(assignment), config=named)


def create_on(held: Held, topic: str, *assignment: list[int], **config: str) -> None:
    """Create a topic in a known place, and wait until all replicas are in sync."""
    held.admin.create_topics([on(topic, *assignment, **config)])[topic].result(PATIENCE_S)
    held.cluster.wait_until_in_sync(topic)


def told_by(held: Held, broker_id: int, topic: str) -> list[dict[str, Any]]:
    """Ask one broker, and nobody else, for the partitions of a topic, in order: as Metadata has them."""
    answer = asyncio.run(metadata_of(held.cluster.broker(broker_id).ports[INTERNAL]))
    assert answer is not None, f"broker {broker_id} does not answer"
    (found,) = [one for one in answer["topics"] if one["name"] == topic]
    return sorted(found["partitions"], key=lambda one: one["partition_index"])
