"""Topics that the members of a group subscribe to, from their metadata in the protocol of consumers.

Source: ClassicGroup.computeSubscribedTopics, which reads the part that all versions have in common (version 0).
"""

from collections.abc import Iterable

from kafka_wire.codec import CodecError
from kafka_wire.compiler import decoder
from light_broker.core.groups.states import CONSUMER_PROTOCOL, Group

VERSION_BYTES = 2
"""int16 in front of the subscription."""


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics of all members; None: unknown, because they are no consumers or their metadata cannot be read."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    if not group.members:
        return frozenset()
    if group.protocol is None:
        return None
    return _topics(member.metadata(group.protocol) for member in group.members.values())


def _topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Read each distinct subscription once: most members of a large group have the same one."""
    read = decoder("ConsumerProtocolSubscription", 0)
    try:
        return frozenset(
            topic for subscription in set(subscriptions) for topic in read(subscription[VERSION_BYTES:], 0)[0]["topics"]
        )
    except CodecError:
        return None
