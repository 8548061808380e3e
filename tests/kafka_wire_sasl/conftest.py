"""One judge for all tests of SASL."""

from collections.abc import Iterator

import pytest

from tests.kafka_wire_sasl.judge import SaslJudge


@pytest.fixture(scope="session")
def sasl_judge() -> Iterator[SaslJudge]:
    """Kafka's own classes."""
    with SaslJudge() as judge:
        yield judge
