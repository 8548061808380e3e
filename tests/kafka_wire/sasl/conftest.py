"""Fixtures of kafka_wire.sasl."""

from collections.abc import Iterator

import pytest

from tests.kafka_wire.sasl.judge import SaslJudge


@pytest.fixture(scope="session")
def sasl_judge() -> Iterator[SaslJudge]:
    """Return Kafka's SASL classes, in one JVM for all tests."""
    with SaslJudge() as judge:
        yield judge
