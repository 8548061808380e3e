"""Java judges that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka_log.judge import PartitionJudge


@pytest.fixture(scope="session")
def partition_judge() -> Iterator[PartitionJudge]:
    """One JVM for all tests of brokers' logs."""
    with PartitionJudge() as running:
        yield running
