"""Checks of the controller's id: no broker has it, none may be given it automatically, and none has replicas under it.

Brokers and clients know the controller as one more broker under that id. Leaves out when the checks are made.
"""

from collections.abc import Sequence

from controller_core.shell.zookeeper.reading import decode_brokers
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession

MAX_PARTITIONS_NAMED = 20
"""Partitions that an error names: enough to recognise a broker by, and a line that a person still reads."""


class IdentityError(Exception):
    """The controller's id is a broker's, or may become one."""


async def refuse_brokers_id(session: ZooKeeperSession, own: int) -> None:
    """Raise IdentityError when a broker is registered under the controller's id."""
    node = await session.get(paths.broker(own))
    if node is None:
        return
    brokers = decode_brokers({str(own): node}, -1)
    where = ", ".join(f"{endpoint.host}:{endpoint.port}" for broker in brokers for endpoint in broker.endpoints)
    raise IdentityError(
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
