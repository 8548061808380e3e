"""Survey of brokers' logs: two lists of each broker, one broker at a time, and a decision before anything is deleted."""

import logging
from collections.abc import Iterable

import numpy as np
import pytest

from controller_core.model import Endpoint, TopicPartition
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.model.zookeeper_events import StrayLogsFound
from controller_core.shell import log_survey as module
from controller_core.shell.log_survey import PAUSES, ListingError, LogSurvey
from controller_core.shell.metrics import Metrics
from controller_core.zookeeper_mode.stray_logs import LogKind
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire.columns.log_dirs import LogDirColumns
from tests.controller_core.shell.admin.api_calls import active_with_topic
from tests.controller_core.shell.admin.fake_active import FakeActive, broker

A0 = TopicPartition("a", 0)


def columns(logs: Iterable[tuple[str, int]], future: Iterable[tuple[str, int]] = ()) -> LogDirColumns:
    """A broker's answer; `future` names copies that are being moved between directories."""
    named = [(name, False) for name in logs] + [(name, True) for name in future]
    return LogDirColumns(
        0,
        (),
        tuple(topic for (topic, _), _ in named),
        np.ones(len(named), np.int64),
        np.array([partition for (_, partition), _ in named], np.int32),
        np.zeros(len(named), np.int64),
        np.array([is_future for _, is_future in named], np.bool_),
    )


class World:
    """Brokers 1 to 3 with topic a on 1 and 2, and the list of each broker."""

    def __init__(self, active: FakeActive) -> None:
        self.active = active
        self.metrics = Metrics()
        self.listed: dict[int, LogDirColumns | Exception] = {}
        self.asked: list[int] = []
        self.now = 0.0
        self.survey = LogSurvey(active, "INTERNAL", self.list_logs, self.metrics)

    async def survey_later(self) -> None:
        """Run the next survey, after the longest possible pause."""
        self.now += PAUSES.cap_ms / 1000
        await self.survey.survey(self.now)

    async def list_logs(self, broker_id: int, _endpoint: Endpoint) -> LogDirColumns:
        """Answer for a broker."""
        self.asked.append(broker_id)
        found = self.listed.get(broker_id, columns([]))
        if isinstance(found, Exception):
            raise found
        return found

    def found(self) -> list[StrayLogsFound]:
        """Submitted events with stray logs."""
        return [event for event in self.active.submitted if isinstance(event, StrayLogsFound)]

    def gauge(self, broker_id: int, kind: LogKind) -> float | None:
        """Value of a broker's gauge."""
        labels = {"broker_id": str(broker_id), "kind": kind.value}
        return self.metrics.registry.get_sample_value("steward_controller_stray_logs", labels)


@pytest.fixture
async def world() -> World:
    """The cluster as it is assigned."""
    return World(await active_with_topic("a", {0: (1, 2)}))


async def test_a_log_in_two_lists_is_submitted_for_a_decision(world: World) -> None:
    """A request in flight at the first list is done by the second."""
    world.listed[3] = columns([("a", 0)])

    await world.survey_later()
    assert world.found() == []
    assert world.gauge(3, LogKind.UNASSIGNED) == 1

    await world.survey_later()
    epoch = world.active.cluster.brokers[3].epoch
    assert world.found() == [StrayLogsFound(3, epoch, (A0,))]


async def test_a_log_in_one_list_only_is_ignored(world: World) -> None:
    """It was being deleted already, or was moved there in between."""
    world.listed[3] = columns([("a", 0)])
    await world.survey_later()
    world.listed[3] = columns([])

    await world.survey_later()

    assert world.found() == []
    assert world.gauge(3, LogKind.UNASSIGNED) is None


async def test_logs_of_a_broker_without_stray_logs_are_listed_again_only_after_it_registers(world: World) -> None:
    """One list for each registration."""
    await world.survey_later()
    await world.survey_later()
    assert world.asked == [1, 2, 3]

    apply(world.active.cluster, BrokersObserved((broker(1), broker(2))))
    await world.survey_later()
    apply(world.active.cluster, BrokersObserved((broker(1), broker(2), broker(3))))
    await world.survey_later()

    assert world.asked == [1, 2, 3, 3]


async def test_two_lists_of_one_broker_have_a_minimum_distance(world: World) -> None:
    """A survey in between asks no broker."""
    world.listed[3] = columns([("a", 0)])

    await world.survey.survey(0.0)
    await world.survey.survey(1.0)

    assert world.asked == [1, 2, 3]


async def test_assigned_logs_and_future_copies_are_no_strays(world: World) -> None:
    """KIP-113: a copy that moves between directories of one broker is listed as future."""
    world.listed = {1: columns([("a", 0)], future=[("a", 0)]), 3: columns([], future=[("a", 0)])}

    await world.survey_later()
    await world.survey_later()

    assert world.found() == []
    assert world.gauge(3, LogKind.UNASSIGNED) is None


async def test_a_log_of_an_unknown_topic_is_reported_once_and_kept(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic's znode may only be unreadable, so the log may be needed."""
    world.listed[3] = columns([("unknown", 4)])

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await world.survey_later()

    assert world.found() == []
    assert world.gauge(3, LogKind.UNKNOWN) == 1
    (line,) = [record for record in caplog.records if "not assigned" in record.message]
    assert (vars(line)["broker"], vars(line)["first"]) == (3, ["unknown-4"])


async def test_a_failed_list_of_logs_is_repeated_and_delays_no_other_broker(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for as long as it fails."""
    world.listed[1] = ListingError("broker 1: CLUSTER_AUTHORIZATION_FAILED")

    with caplog.at_level(logging.WARNING):
        await world.survey_later()
        await world.survey_later()

    assert world.asked == [1, 2, 3, 1]
    assert len([record for record in caplog.records if "Failed to list" in record.message]) == 1


async def test_the_number_of_logs_that_one_event_deletes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_AT_ONCE."""
    active = await active_with_topic("a", dict.fromkeys(range(5), (1, 2)))
    many = World(active)
    monkeypatch.setattr(module, "MAX_AT_ONCE", 2)
    monkeypatch.setattr(module, "SLICE", 2)
    many.listed[3] = columns([("a", partition) for partition in range(5)])

    await many.survey_later()
    await many.survey_later()

    assert [len(event.partitions) for event in many.found()] == [2]
