"""Filter for brokers: excludes controllers that a cluster lists as brokers.

A Steward controller is in the list of brokers so that clients can reach it, but holds no data: it must not be counted, nor named in
a plan. Its setting `process.roles` is only "controller". A stock broker's is empty (ZooKeeper
mode) or contains "broker"; a node that does not report the setting counts as a broker.
"""

from __future__ import annotations

from typing import Any

from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest

from kafka_operator.admin.connection import Connection

PROCESS_ROLES = "process.roles"
CONTROLLER_ONLY = {"controller"}


def only_brokers(connection: Connection, metadata: Any, known: dict[int, bool]) -> tuple[int, ...]:
    """Return the ids of the brokers in a Metadata answer, ascending.

    `known` caches the role of each node (id -> whether it is only a controller), since an offline node cannot be queried;
    a node that was never reached counts as a broker.
    """
    listed = sorted(int(broker.node_id) for broker in metadata.brokers)
    controller_id = int(metadata.controller_id)
    if controller_id in listed and controller_id not in known:
        answer = _ask(connection, controller_id)
        if answer is not None:
            known[controller_id] = answer
    return tuple(node_id for node_id in listed if not known.get(node_id, False))


def _ask(connection: Connection, node_id: int) -> bool | None:
    """Return whether a node is only a controller, None when it cannot be queried."""
    resources = [(int(ConfigResourceType.BROKER), str(node_id), [PROCESS_ROLES])]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
    try:
        response = connection.to_node(request, node_id)
    except KafkaError:
        return None
    values = [entry.value for result in response.results for entry in result.configs if entry.name == PROCESS_ROLES]
    return any({role.strip() for role in (value or "").split(",")} == CONTROLLER_ONLY for value in values)
