"""Whether the controller's id can be: it is one that no broker has, and none that brokers hand out by themselves.

Brokers and clients are told that the controller is one more broker under that id (wire-facts, h4). Leaves out when to ask.
"""

from controller_core.shell.zookeeper.reading import decode_brokers
from kafka_zookeeper import paths
from kafka_zookeeper.session import ZooKeeperSession


class IdentityError(Exception):
    """The controller's id cannot be: a broker has it, or brokers hand out such ids themselves."""


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


def over_reserved_max(own: int, broker: int, reserved_max_id: int) -> IdentityError | None:
    """Tell why an id cannot be the controller's that brokers may be given automatically; None when it can."""
    if own <= reserved_max_id:
        return None
    return IdentityError(
        f"the controller's id {own} is over reserved.broker.max.id {reserved_max_id} of broker {broker}, "
        "which may be given to a broker: choose a lower one"
    )
