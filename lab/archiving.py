"""Creation of class archives (JEP 350): one broker of each version runs for a moment, and Java writes its loaded classes when it exits.

Takes about 30 s for both versions, once. Each later start of a broker takes a third less time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from lab.cache import cached
from lab.class_archives import ARCHIVE, archive_name
from lab.folder import lab_folder
from lab.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION
from lab.kafka import KafkaBroker
from lab.kraft import KraftNode, new_id
from lab.missing import LabError
from lab.node import Node
from lab.ports import free_port
from lab.zookeeper import ZooKeeperServer


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
    zookeeper = ZooKeeperServer(folder / "zookeeper")
    try:
        zookeeper.start()
        _archive(KafkaBroker(1, zookeeper, folder), archive)
    finally:
        zookeeper.close()


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
    node.format()
    _archive(node, archive)


def _archive(node: Node, archive: Path) -> None:
    node.process.command.insert(1, f"-XX:ArchiveClassesAtExit={archive}")
    try:
        node.start()
        node.stop()
    finally:
        node.close()
