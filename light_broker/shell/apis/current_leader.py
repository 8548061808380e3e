"""Leaders in the responses of Produce and Fetch, so that a client with old metadata needs no Metadata request (KIP-951).

Source: KafkaApis.getCurrentLeader.
"""

from kafka_node.context import RequestContext
from kafka_wire import Body
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.broker import Broker


class CurrentLeaders:
    """The leaders that one response contains."""

    def __init__(self, broker: Broker, context: RequestContext) -> None:
        self._broker = broker
        self._listener = context.listener
        self._nodes: dict[int, Body] = {}

    def of(self, partition: TopicPartition) -> Body:
        """Return the field `current_leader`, and remember the address of the leader."""
        leader_id, leader_epoch = self._broker.replicas.leader_of(partition)
        node = self._broker.view.brokers.get(leader_id)
        if node is not None and not node.is_fenced and (endpoint := node.endpoints.get(self._listener)) is not None:
            self._nodes[leader_id] = {
                "node_id": leader_id,
                "host": endpoint.host,
                "port": endpoint.port,
                "rack": node.rack,
            }
        return {"leader_id": leader_id, "leader_epoch": leader_epoch}

    @property
    def endpoints(self) -> list[Body]:
        """Return the field `node_endpoints`."""
        return list(self._nodes.values())
