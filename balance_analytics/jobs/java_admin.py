"""The Java admin client that Spark's connector brings along: with it a run asks Kafka with the same settings for access as it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

TIMEOUT_S = 30
"""For an answer: what the Java client waits by default for one request."""


@contextmanager
def admin_client(jvm: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Yield an admin client with a cluster's address and settings for access. Raises `Py4JError`."""
    given = jvm.java.util.HashMap()
    limits = dict.fromkeys(("request.timeout.ms", "default.api.timeout.ms"), str(TIMEOUT_S * 1000))
    for name, value in {**settings, **limits}.items():
        given.put(name, value)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
    try:
        yield admin
    finally:
        admin.close()


def wait(jvm: Any, future: Any) -> Any:
    """Return the result of a KafkaFuture. Raises `Py4JError`, also when it takes too long."""
    return future.get(TIMEOUT_S, jvm.java.util.concurrent.TimeUnit.SECONDS)
