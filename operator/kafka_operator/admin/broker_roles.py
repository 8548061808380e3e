"""Which of the nodes that a cluster lists as brokers hold data.

A controller of ours stands in the list of brokers so that clients can reach it, and is none: it must not be counted, nor named in
a plan. It says so in Kafka's own words: its setting `process.roles` is "controller" alone. A stock broker's is empty (ZooKeeper
mode) or contains "broker"; a cluster that does not tell counts as made of brokers.
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

    `known` keeps what each controller said of itself (id -> whether it is a controller alone), since it cannot be asked while it
    is away; one that was never reached counts as a broker.
    """
    listed = sorted(int(broker.node_id) for broker in metadata.brokers)
    controller_id = int(metadata.controller_id)
    if controller_id in listed and controller_id not in known:
        answer = _ask(connection, controller_id)
        if answer is not None:
            known[controller_id] = answer
    return tuple(node_id for node_id in listed if not known.get(node_id, False))


def _ask(connection: Connection, node_id: int) -> bool | None:
    """Return whether a node is a controller alone, None when it cannot be asked."""
    resources = [(int(ConfigResourceType.BROKER), str(node_id), [PROCESS_ROLES])]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=False, include_documentation=False)
    try:
        response = connection.to_node(request, node_id)
    except KafkaError:
        return None
    values = [entry.value for result in response.results for entry in result.configs if entry.name == PROCESS_ROLES]
    return any({role.strip() for role in (value or "").split(",")} == CONTROLLER_ONLY for value in values)
