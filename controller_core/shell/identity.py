"""Checks of the controller's id: no broker has it, none may be given it automatically, and none has replicas under it.

Brokers and clients know the controller as one more broker under that id. Leaves out where it is read and when the checks are made (zookeeper.tenure).
"""

from collections.abc import Sequence

from controller_core.model.broker import Broker

MAX_PARTITIONS_NAMED = 20
"""Partitions that an error names: enough to recognise a broker by, and a line that a person still reads."""


class IdentityError(Exception):
    """The controller's id is a broker's, or may become one."""


def is_registered(own: int, broker: Broker | None) -> IdentityError:
    """Explain that a broker is registered under the controller's id; None: its registration cannot be decoded."""
    endpoints = () if broker is None else broker.endpoints
    where = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)
    return IdentityError(
        f"the controller's id {own} is a broker's ({where or 'whose registration cannot be read'}): choose an id that no "
        "broker has, at most reserved.broker.max.id (1000)"
    )


def holds_replicas(own: int, partitions: Sequence[str]) -> IdentityError:
    """Explain that partitions name the controller's id as a broker with records."""
    named = ", ".join(partitions[:MAX_PARTITIONS_NAMED])
    more = len(partitions) - MAX_PARTITIONS_NAMED
    return IdentityError(
        f"the controller's id {own} belongs to a broker that is away or was removed: it is the leader, in the ISR or a "
        f"replica of {len(partitions)} partitions: {named}{f' and {more} more' if more > 0 else ''}. No partition was "
        "changed. Choose an id that no broker has or had, at most reserved.broker.max.id (1000). To keep this id, first "
        "move these partitions to other brokers with kafka-reassign-partitions.sh, while a broker or a controller with "
        "another id is the active controller"
    )


def over_reserved_max(own: int, broker: int, reserved_max_id: int) -> IdentityError | None:
    """Tell why an id cannot be the controller's that brokers may be given automatically; None when it can."""
    if own <= reserved_max_id:
        return None
    return IdentityError(
        f"the controller's id {own} is over reserved.broker.max.id {reserved_max_id} of broker {broker}, "
        "which may be given to a broker: choose a lower one"
    )
