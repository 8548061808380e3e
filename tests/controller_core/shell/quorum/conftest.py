"""Fixtures of quorum mode's shell."""

from collections.abc import Iterator

import pytest

from tests.controller_core.shell.quorum.judge import StorageJudge


@pytest.fixture(scope="session")
def judge() -> Iterator[StorageJudge]:
    """Kafka's own KafkaConfig and kafka-storage; mark the test `java`."""
    with StorageJudge() as running:
        yield running
