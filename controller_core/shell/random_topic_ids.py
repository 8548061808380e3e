"""What is drawn at random for new topics: their ids, and where placement starts. The core gets it with the event.

Leaves out what is made of it (rules.placement).
"""

from random import Random
from uuid import UUID

RESERVED_TOPIC_IDS = frozenset({UUID(int=0), UUID(int=1)})
"""No topic, and the metadata log of a quorum (org.apache.kafka.common.Uuid.RESERVED)."""

PLACE_BITS = 31
"""Kafka draws below the number of brokers; placement reduces a wider draw to that, and brokers may change meanwhile."""


def draw_topic_id(random: Random) -> UUID:
    """Draw a version 4 UUID, as Uuid.randomUuid does: not a reserved one, and none that is written with a dash first.

    In Kafka's base64 such an id would look like an option to the tools that take ids from the command line.
    """
    while True:
        topic_id = UUID(int=random.getrandbits(128), version=4)
        if topic_id not in RESERVED_TOPIC_IDS and not starts_with_dash(topic_id):
            return topic_id


def starts_with_dash(topic_id: UUID) -> bool:
    """Tell whether Kafka's text of an id (base64 for URLs) starts with a dash: its first six bits are 62.

    >>> starts_with_dash(UUID("f8000000-0000-4000-8000-000000000000"))
    True
    """
    return topic_id.bytes[0] >> 2 == 62


def draw_place(random: Random) -> int:
    """Draw a start index or a replica shift."""
    return random.getrandbits(PLACE_BITS)
