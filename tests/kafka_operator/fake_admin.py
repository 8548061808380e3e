"""The fake cluster as a command connects to it, in place of `KafkaAdmin`. A subclass adds topics and brokers."""

from __future__ import annotations

from typing import Any

from kafka_operator.admin.port import ClusterUnreachableError
from kafka_operator.resources.security import Security
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.reconciler.gate import Gate


class FakeAdmin(FakeKafka):
    """`reached` has the servers and credentials of the last connection; while `down`, no broker answers."""

    reached: tuple[list[str], Security]
    down = False

    def __init__(self, servers: list[str], _metrics: object, security: Security) -> None:
        super().__init__(Gate())
        type(self).reached = (servers, security)

    async def describe_layout(self, names: Any) -> Any:
        if self.down:
            raise ClusterUnreachableError("No broker answers.")
        return await super().describe_layout(names)
