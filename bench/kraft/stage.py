"""Stock brokers of Kafka 4.3 under three controllers of one kind, Steward's or Kafka's. Everything else is the same."""

import contextlib
from collections.abc import Iterator, Mapping

from bench.kraft.controllers import Kind, quorum_of
from kafka_wire.net.client import Node
from lab.peers.kraft import KraftNode
from lab.peers.quorum import HOST, Quorum
from lab.peers.replicated_cluster import ReplicatedCluster
from lab.processes.ports import free_port

BROKERS = (11, 12, 13)
CONTROLLER_HEAP = "256m"


class Stage(ReplicatedCluster[KraftNode]):
    """The brokers by their ids, and their controllers."""

    def __init__(self, kind: Kind, controllers: Quorum) -> None:
        super().__init__()
        self.kind = kind
        self.controllers = controllers

    def client(self, broker: int) -> Node:
        """Return a client of one broker, which the caller closes."""
        port = self[broker].port
        assert port is not None, "it is a broker"
        return Node(HOST, port)


@contextlib.contextmanager
def stage(kind: Kind, settings: Mapping[str, str], heap: str, *, is_small: bool = True) -> Iterator[Stage]:
    """Yield a running cluster; `settings` are those of all nodes, `heap` and `is_small` those of the brokers' JVMs."""
    with (
        quorum_of(kind, settings, CONTROLLER_HEAP, start=True) as controllers,
        contextlib.ExitStack() as stack,
    ):
        names = ",".join(f"{node_id}@{HOST}:{node.member.port}" for node_id, node in controllers.items())
        running = Stage(kind, controllers)
        for broker in BROKERS:
            running[broker] = node = KraftNode(
                broker,
                controllers.folder,
                quorum=names,
                cluster_id=controllers.plan.cluster_id,
                controller_port=None,
                port=free_port(),
                brokers=len(BROKERS),
                settings=settings,
                heap=heap,
                is_small=is_small,
            )
            stack.callback(node.close)
            node.format()
            node.launch()
        for node in running.values():
            node.wait_until_ready()
        running.wait_until_all_are_known()
        yield running
