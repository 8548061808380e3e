"""Random topic ids and start indexes of replica placement, which decisions get with the event."""

from random import Random
from uuid import UUID

RESERVED_TOPIC_IDS = frozenset({UUID(int=0), UUID(int=1)})
"""Ids of no topic, and of the metadata log of a quorum (org.apache.kafka.common.Uuid.RESERVED)."""
PLACE_BITS = 31
"""Kafka draws a number below the number of brokers. The placement reduces this wider number, as brokers may change in between."""


def draw_topic_id(random: Random) -> UUID:
    """Draw a version 4 UUID, as Uuid.randomUuid does: neither a reserved id, nor one whose base64 form starts with a dash.

    Tools that take ids from the command line would parse such an id as an option.
    """
    while True:
        topic_id = UUID(int=random.getrandbits(128), version=4)
        if topic_id not in RESERVED_TOPIC_IDS and not starts_with_dash(topic_id):
            return topic_id


def starts_with_dash(topic_id: UUID) -> bool:
    """Return whether Kafka's text of an id (base64 for URLs) starts with a dash: its first six bits are 62.

    >>> starts_with_dash(UUID("f8000000-0000-4000-8000-000000000000"))
    True
    """
    return topic_id.bytes[0] >> 2 == 62


def draw_place(random: Random) -> int:
    """Draw a start index or a replica shift."""
    return random.getrandbits(PLACE_BITS)
