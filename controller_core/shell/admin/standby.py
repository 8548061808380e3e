"""Requests about the cluster that a client sends to a process which is not the controller.

Brokers list the controller's id as a node, also while its process has been restarted and waits for the session of its predecessor
to end. An answer without brokers would tell a client that the cluster has none, so a live broker answers in place of this process.
Leaves out the requests that only a controller can carry out: they are refused with NOT_CONTROLLER.
"""

from controller_core.shell.front.handler import RelayInstead
from kafka_wire.api import ApiKey
from kafka_wire.net.server import CloseConnection

ANSWERED_BY_BROKERS = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER})
"""Requests that every broker answers about the whole cluster."""
OF_CONTROLLERS_ONLY = frozenset({ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""Requests about the cluster that brokers in ZooKeeper mode do not serve."""

WHY = "this process is not the controller, and brokers know the cluster"


def leave_to_brokers(key: ApiKey, broker_count: int | None) -> None:
    """Raise RelayInstead or CloseConnection where this process should not answer a request by itself.

    `broker_count` is the number of registered brokers, None while they have not been read. With none at all, an answer
    without brokers is true.
    """
    if broker_count == 0:
        return
    if key in ANSWERED_BY_BROKERS:
        raise RelayInstead(WHY)
    if key in OF_CONTROLLERS_ONLY:
        raise CloseConnection(WHY)
