"""Who is alive to a broker's knowledge: what tells that the controller has spoken to it, in either mode of Kafka."""

from __future__ import annotations

import contextlib
import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

LOOK_TIMEOUT_S = 2.0
"""Of one look, which is repeated."""

_UNHEARD = logging.getLogger("lab.alive.unheard")
"""What librdkafka says of a broker that is not up yet."""
_UNHEARD.setLevel(logging.CRITICAL)


def alive(address: str) -> set[int]:
    """Return the brokers that the one at this address (host:port, without security) knows of, with a controller that is none.

    None at all while it does not answer, or while no controller has told it of anybody.
    """
    admin = AdminClient({"bootstrap.servers": address}, logger=_UNHEARD)
    with contextlib.suppress(KafkaException):
        return set(admin.list_topics(timeout=LOOK_TIMEOUT_S).brokers)
    return set()
