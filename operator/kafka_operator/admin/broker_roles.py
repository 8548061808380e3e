"""Filter for brokers: excludes controllers that a cluster lists as brokers.

A Steward controller is in the list of brokers so that clients can reach it, but holds no data: it must not be counted, nor named in
a plan. Its setting `process.roles` is only "controller". A stock broker's is empty (ZooKeeper
mode) or contains "broker"; a node that does not report the setting counts as a broker.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_operator.admin.connection import Connection
from kafka_operator.admin.requests import BROKER, describe_configs_request, values_of
from kafka_wire.net.client import RequestFailed

PROCESS_ROLES = "process.roles"
CONTROLLER_ONLY = {"controller"}


async def only_brokers(
    connection: Connection, controller_id: int, node_ids: Iterable[int], known: dict[int, bool]
) -> tuple[int, ...]:
    """Return the ids of the brokers among the nodes and the controller of a Metadata answer, ascending.

    `known` caches the role of each node (id -> whether it is only a controller), since an offline node cannot be queried;
    a node that was never reached counts as a broker.
    """
    listed = sorted(node_ids)
    if controller_id in listed and controller_id not in known:
        answer = await _ask(connection, controller_id)
        if answer is not None:
            known[controller_id] = answer
    return tuple(node_id for node_id in listed if not known.get(node_id, False))


async def _ask(connection: Connection, node_id: int) -> bool | None:
    """Return whether a node is only a controller, None when it cannot be queried."""
    try:
        response = await connection.to_node(describe_configs_request(BROKER, {str(node_id): [PROCESS_ROLES]}), node_id)
    except RequestFailed:
        return None
    values = values_of(response, PROCESS_ROLES)
    return any({role.strip() for role in (value or "").split(",")} == CONTROLLER_ONLY for value in values)
