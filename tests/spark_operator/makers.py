"""SparkApplications and schedules for tests, each in one line, and the world in which they run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from spark_operator import kinds
from spark_operator.engine.applications import SparkPorts
from spark_operator.metrics import SparkMetrics
from spark_operator.resources.application import SparkApplication, read_spark_application
from spark_operator.resources.pods import Phase, Role, SparkPod
from spark_operator.resources.schedule import ScheduledSparkApplication, read_scheduled_spark_application
from tests.kafka_operator.makers import CREATED, DELETED, Raw, raw_object
from tests.kafka_operator.world import World
from tests.reconciler.gate import Gate
from tests.spark_operator.fake_spark import APPLICATION, FakeSpark

UID = "0a1b2c3d-0000-0000-0000-000000000000"
DRIVER = "pi-0a1b2c3d-driver-1"


def spark_spec(**spec: Any) -> Raw:
    """What the schema makes of a small application."""
    return {
        "type": "Python",
        "image": "spark:1",
        "mainApplicationFile": "local:///opt/jobs/pi.py",
        "driver": {},
        "executor": {},
        **spec,
    }


def raw_spark(name: str = "pi", /, **spec: Any) -> Raw:
    """A SparkApplication as a user applies it."""
    return raw_object(kinds.SPARK_APPLICATION, name, spark_spec(**spec))


def raw_schedule(name: str = "nightly", /, *, template: Raw | None = None, **spec: Any) -> Raw:
    """A ScheduledSparkApplication as a user applies it: every hour."""
    wanted = {"schedule": "0 * * * *", "template": template or spark_spec(), **spec}
    return raw_object(kinds.SCHEDULED_SPARK_APPLICATION, name, wanted)


def spark(
    name: str = "pi", /, *, status: Raw | None = None, deleted: bool = False, generation: int = 1, **spec: Any
) -> SparkApplication:
    """A SparkApplication as read back."""
    raw = raw_spark(name, **spec)
    _born(raw, UID, generation, deleted=deleted)
    raw["status"] = status or {}
    return read_spark_application(raw)


def schedule(
    name: str = "nightly", /, *, status: Raw | None = None, created: str = CREATED, **spec: Any
) -> ScheduledSparkApplication:
    """A ScheduledSparkApplication as read back."""
    raw = raw_schedule(name, **spec)
    _born(raw, "uid-schedule", 1, created=created)
    raw["status"] = status or {}
    return read_scheduled_spark_application(raw)


def pod(phase: Phase = Phase.RUNNING, **fields: Any) -> SparkPod:
    """The driver's pod of attempt 1."""
    found = {"name": DRIVER, "uid": "pod-1", "role": Role.DRIVER, "attempt": 1, "application_uid": UID, **fields}
    return SparkPod(phase=phase, **found)


def _born(raw: Raw, uid: str, generation: int, *, created: str = CREATED, deleted: bool = False) -> None:
    raw["metadata"] |= {
        "uid": uid,
        "resourceVersion": "9",
        "generation": generation,
        "creationTimestamp": created,
    }
    if deleted:
        raw["metadata"]["deletionTimestamp"] = DELETED


class SparkWorld(World):
    """The world with SparkApplications in it."""

    def __init__(self, gate: Gate | None = None, namespaces: frozenset[str] = frozenset()) -> None:
        super().__init__(gate)
        self.fake = FakeSpark(self.kube, self.gate)
        self.spark = SparkPorts(self.fake, SparkMetrics(self.metrics.registry), kubeflow=True, namespaces=namespaces)

    def status(self, key: Any = APPLICATION) -> Raw:
        """Return a resource's status."""
        found: Raw = self.kube.objects[key].get("status", {})
        return found

    def reasons(self) -> list[str]:
        """Return the reasons of all events, in order."""
        return [event.reason for event in self.kube.events]


@contextlib.asynccontextmanager
async def spark_running(
    gate: Gate | None = None, namespaces: frozenset[str] = frozenset()
) -> AsyncIterator[SparkWorld]:
    """A world with the operator running; jobs may run in `namespaces`, everywhere by default."""
    world = SparkWorld(gate, namespaces)
    world.start()
    try:
        yield world
    finally:
        await world.kill()
