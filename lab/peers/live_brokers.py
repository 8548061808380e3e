"""Live brokers as one broker knows them, in either mode of Kafka: the broker knows them from the controller."""

from __future__ import annotations

import contextlib
import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

REQUEST_TIMEOUT_S = 2.0
"""For one request; callers repeat it."""

_SILENT = logging.getLogger("lab.peers.live_brokers.silent")
"""Takes librdkafka's errors about a broker that is not ready yet."""
_SILENT.setLevel(logging.CRITICAL)


def alive(address: str) -> set[int]:
    """Return the ids of the brokers that the broker at this address (host:port, without security) knows as live.

    A Steward controller is among them. The set is empty while the broker does not answer, or has no metadata from a controller yet.
    """
    admin = AdminClient({"bootstrap.servers": address}, logger=_SILENT)
    with contextlib.suppress(KafkaException):
        return set(admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers)
    return set()
