"""Creation of class archives (JEP 350): one broker of each version does a little of everything, and Java writes its loaded classes when it exits.

Takes about 40 s for both versions, once. Each later start of a broker takes a third less time, and so does its first topic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.downloads.cache import cached
from lab.downloads.class_archives import ARCHIVE, archive_name
from lab.downloads.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION
from lab.errors import LabError
from lab.peers.cluster import kafka_cluster
from lab.peers.kraft import KraftNode, new_id
from lab.processes.folder import lab_folder
from lab.processes.node import Node
from lab.processes.ports import free_port

TOPIC = "archived"

PATIENCE_S = 60.0

WRITING_TIMEOUT_S = 300.0
"""Java writes an archive in some ten seconds of processor time."""


def make_archives() -> None:
    """Create the missing archives; raises `LabError` when a broker does not run on this machine."""
    for version, run in {KAFKA_VERSION: _in_zookeeper_mode, NEWEST_KAFKA_VERSION: _with_a_quorum}.items():
        cached(archive_name(version), partial(_make, run))


def _make(run: Callable[[Path, Path], None], into: Path) -> None:
    with lab_folder() as folder:
        run(folder, into / ARCHIVE)
    if not (into / ARCHIVE).is_file():
        raise LabError(f"Java wrote no archive of Kafka's classes to {into}")


def _in_zookeeper_mode(folder: Path, archive: Path) -> None:
    two = {"offsets.topic.replication.factor": "2", "offsets.topic.num.partitions": "1"}
    with kafka_cluster((1, 2), start=False, folder=folder, settings=two) as cluster:
        _archive_at_exit(cluster.broker(1), archive)
        cluster.start_brokers()
        cluster.wait_until_known()
        _use(cluster.bootstrap(), replication_factor=2)
        cluster.broker(2).stop()  # the other one takes over as controller and leader
        cluster.broker(1).process.terminate(timeout_s=WRITING_TIMEOUT_S)


def _with_a_quorum(folder: Path, archive: Path) -> None:
    controller_port = free_port()
    node = KraftNode(
        1,
        folder,
        quorum=f"1@127.0.0.1:{controller_port}",
        cluster_id=new_id(),
        controller_port=controller_port,
        port=free_port(),
        brokers=1,
    )
    _archive_at_exit(node, archive)
    try:
        node.format()
        node.start()
        _use(node.address, replication_factor=1)
        node.process.terminate(timeout_s=WRITING_TIMEOUT_S)
    finally:
        node.close()


def _archive_at_exit(node: Node, archive: Path) -> None:
    node.process.command.insert(1, f"-XX:ArchiveClassesAtExit={archive}")


def _use(bootstrap: str, *, replication_factor: int) -> None:
    """Use a topic as most tests do, so that what this needs is loaded."""
    clients: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(clients)
    admin.create_topics([NewTopic(TOPIC, 1, replication_factor)])[TOPIC].result(PATIENCE_S)
    producer = Producer({**clients, "enable.idempotence": True})
    producer.produce(TOPIC, b"value")
    producer.flush(PATIENCE_S)
    consumer = Consumer({**clients, "group.id": TOPIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    if consumer.poll(PATIENCE_S) is None:
        raise LabError("the broker of the class archive returns no record")
    consumer.commit(asynchronous=False)
    consumer.close()
    admin.delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
