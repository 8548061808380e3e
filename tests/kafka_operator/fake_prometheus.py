"""A Prometheus server behind the operator's port: values by query."""

from __future__ import annotations

from kafka_operator.prometheus.port import PrometheusError, PrometheusServer
from tests.reconciler.gate import Gate


class FakePrometheus:
    """One server: set values by query; a query without a value finds nothing."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.values: dict[str, float] = {}
        self.asked: list[PrometheusServer] = []

    async def query(self, server: PrometheusServer, expression: str) -> float:
        return self.gate.call("kafka describe_query", lambda: self._value(server, expression))

    def _value(self, server: PrometheusServer, expression: str) -> float:
        self.asked.append(server)
        if expression not in self.values:
            raise PrometheusError("the query found nothing")
        return self.values[expression]
