"""Metrics of a controller in KRaft mode. Source: QuorumControllerMetrics and ControllerMetadataMetrics of Kafka 4.3."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controller_core.model import TopicPartition, events, quorum_events
from controller_core.quorum.batches import Position
from controller_core.shell.kraft.metrics import KRaftMetrics
from controller_core.shell.kraft.upkeep import Upkeep
from kafka_metadata.metadata_versions import ELR_VERSION
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import FeatureLevelRecord
from tests.controller_core.shell.kraft.memory_quorum import SETTINGS, Member, SharedLog, new_topic
from tests.waiting import until

PREFIX = "kafka_controller_kafkacontroller"
STATS = "kafka_controller_controllerstats"


def member_with_metrics(log: SharedLog, node_id: int) -> tuple[Member, CollectorRegistry]:
    """Add a controller whose metrics are in a registry of the test."""
    registry = CollectorRegistry()
    member = log.add(node_id)
    member.controller.metrics = KRaftMetrics(registry)
    return member, registry


def values(member: Member, registry: CollectorRegistry, *names: str) -> dict[str, float | None]:
    """Read gauges of the controller."""
    member.controller.update_metrics(member.log.high_watermark)
    return {name: registry.get_sample_value(f"{PREFIX}_{name}") for name in names}


async def cluster_of(log: SharedLog) -> tuple[Member, CollectorRegistry]:
    """Return the active controller of two brokers and three partitions: the first broker leads one, the second two, one of them alone."""
    member, registry = member_with_metrics(log, 101)
    log.elect(101)
    for broker in (1, 2):
        await member.start_broker(broker)
    await member.controller.submit(new_topic("orders", (1, 2), (2, 1)))
    await member.controller.submit(new_topic("alone", (2,)))
    return member, registry


CLUSTER = ("globaltopiccount", "globalpartitioncount", "offlinepartitionscount", "preferredreplicaimbalancecount")
BROKERS = ("activebrokercount", "fencedbrokercount", "controlledshutdownbrokercount")


@pytest.mark.shows("F73")
async def test_the_cluster_is_counted_by_the_active_controller_and_by_standbys(log: SharedLog) -> None:
    """Broker 2 is fenced: its preferred partition moves, and the one without another replica is offline."""
    active, registry = await cluster_of(log)
    standby, standby_registry = member_with_metrics(log, 102)
    await active.controller.attempt(quorum_events.FenceBroker(2, active.controller.cluster.brokers[2].epoch))

    expected = dict(zip(CLUSTER + BROKERS, (2, 3, 1, 2, 1, 1, 0), strict=True))
    assert values(active, registry, *CLUSTER, *BROKERS) == expected
    await until(lambda: standby.controller.committed.end_offset == log.high_watermark)
    assert values(standby, standby_registry, *CLUSTER, *BROKERS) == expected


@pytest.mark.shows("F73")
async def test_one_process_is_active_and_only_a_standby_lags(log: SharedLog) -> None:
    """LastAppliedRecordLagMs of the active controller is 0."""
    active, registry = await cluster_of(log)
    standby, standby_registry = member_with_metrics(log, 102)

    assert values(active, registry, "activecontrollercount", "lastappliedrecordlagms") == {
        "activecontrollercount": 1,
        "lastappliedrecordlagms": 0,
    }
    assert values(standby, standby_registry, "activecontrollercount") == {"activecontrollercount": 0}
    lag_ms = values(standby, standby_registry, "lastappliedrecordlagms")["lastappliedrecordlagms"]
    assert lag_ms is not None
    assert lag_ms > 0


@pytest.mark.shows("F73")
async def test_offsets_are_those_of_the_last_records(log: SharedLog) -> None:
    """LastCommittedRecordOffset may be ahead of LastAppliedRecordOffset."""
    active, registry = await cluster_of(log)

    assert values(active, registry, "lastcommittedrecordoffset", "lastappliedrecordoffset") == {
        "lastcommittedrecordoffset": log.high_watermark - 1,
        "lastappliedrecordoffset": log.high_watermark - 1,
    }


@pytest.mark.shows("F73")
async def test_each_broker_has_its_state_and_the_active_controller_the_time_since_its_heartbeat(log: SharedLog) -> None:
    """BrokerRegistrationState: 10 fenced, 20 in controlled shutdown, 30 active."""
    active, registry = await cluster_of(log)
    sessions, brokers = active.controller.sessions, active.controller.cluster.brokers
    for broker in (1, 2):
        sessions.hear(broker, brokers[broker].epoch, log.now_ms)
    await active.controller.submit(quorum_events.Heartbeat(1, brokers[1].epoch, log.end_offset, wants_shutdown=True))
    await active.controller.attempt(quorum_events.FenceBroker(2, brokers[2].epoch))
    log.now_ms += 250
    active.controller.update_metrics(log.high_watermark)

    def by_broker(name: str) -> list[float | None]:
        return [registry.get_sample_value(f"{PREFIX}_{name}", {"broker": broker}) for broker in ("1", "2")]

    assert by_broker("brokerregistrationstate") == [20, 10]
    assert by_broker("timesincelastheartbeatreceivedms") == [250, None]


@pytest.mark.shows("F73")
async def test_sessions_that_end_and_active_controllers_are_counted(log: SharedLog) -> None:
    """TimedOutBrokerHeartbeatCount and NewActiveControllersCount."""
    active, registry = await cluster_of(log)
    active.controller.sessions.hear(2, active.controller.cluster.brokers[2].epoch, log.now_ms)
    log.now_ms += SETTINGS.broker_session_timeout_ms + 1
    await Upkeep(active.controller, SETTINGS, 0).fence_expired(due_ms=log.now_ms)
    log.elect(None)
    log.elect(101)

    assert registry.get_sample_value(f"{PREFIX}_timedoutbrokerheartbeats_total") == 1
    assert registry.get_sample_value(f"{PREFIX}_newactivecontrollers_total") == 2


@pytest.mark.shows("F73")
async def test_elections_from_the_eligible_leader_replicas_and_unclean_ones_are_counted(log: SharedLog) -> None:
    """ElectionFromEligibleLeaderReplicasPerSec and UncleanLeaderElectionsPerSec, by the controller that decided them."""
    active, registry = member_with_metrics(log, 101)
    log.elect(101)
    for broker in (1, 2):
        await active.start_broker(broker)
    await active.controller.submit(new_topic("orders", (1, 2)))
    brokers = active.controller.cluster.brokers

    def counts() -> tuple[float | None, float | None]:
        names = "electionfromeligibleleaderreplicas", "uncleanleaderelections"
        eligible, unclean = (registry.get_sample_value(f"{STATS}_{name}_total") for name in names)
        return eligible, unclean

    for broker in (2, 1):
        await active.controller.attempt(quorum_events.FenceBroker(broker, brokers[broker].epoch))
    before = counts()
    await active.controller.submit(quorum_events.Heartbeat(1, brokers[1].epoch, log.end_offset))
    eligible = counts()
    await active.controller.attempt(quorum_events.FenceBroker(1, brokers[1].epoch))
    await active.controller.submit(quorum_events.Heartbeat(2, brokers[2].epoch, log.end_offset))
    await active.controller.submit(events.ElectLeaders((TopicPartition("orders", 0),), unclean=True))

    assert before == (0, 0)
    assert eligible == (1, 0)
    assert counts() == (1, 1)


@pytest.mark.shows("F73")
async def test_levels_of_features_loaded_snapshots_and_the_active_controller_are_gauges(
    log: SharedLog, tmp_path: Path
) -> None:
    """MetadataLoaderMetrics; a feature that is not finalized any more has no level."""
    member, registry = member_with_metrics(log, 101)
    log.elect(101)
    await member.start_broker(1)
    log.kraft_version = 1

    def gauges(leader_id: int | None) -> dict[str, float | None]:
        member.controller.update_metrics(log.high_watermark, leader_id)
        names = "currentmetadataversion", "handleloadsnapshotcount", "currentcontrollerid"
        found = {name: registry.get_sample_value(f"kafka_server_metadataloader_{name}") for name in names}
        levels = ("metadata.version", "kraft.version", ELR_VERSION)
        return found | {
            name: registry.get_sample_value("kafka_server_metadataloader_finalizedlevel", {"featurename": name})
            for name in levels
        }

    active = gauges(101)
    log.elect(None)
    values = [encode_record(FeatureLevelRecord("metadata.version", 25), 25)]
    member.load(tmp_path, values, Position(log.end_offset, log.epoch))

    assert active == {
        "currentmetadataversion": 30,
        "handleloadsnapshotcount": 0,
        "currentcontrollerid": 101,
        "metadata.version": 30,
        "kraft.version": 1,
        ELR_VERSION: 1,
    }
    assert gauges(None) == {
        "currentmetadataversion": 25,
        "handleloadsnapshotcount": 1,
        "currentcontrollerid": -1,
        "metadata.version": 25,
        "kraft.version": 1,
        ELR_VERSION: None,
    }


@pytest.mark.shows("F73")
async def test_events_are_timed_by_kind(log: SharedLog) -> None:
    """EventQueueProcessingTimeMs; the time of each kind is Steward's own metric."""
    active, registry = await cluster_of(log)
    before = registry.get_sample_value("kafka_controller_controllereventmanager_eventqueueprocessingtimems_count")
    await active.controller.submit(new_topic("payments", (1,)))

    assert before is not None
    assert (
        registry.get_sample_value("kafka_controller_controllereventmanager_eventqueueprocessingtimems_count")
        == before + 1
    )
    assert registry.get_sample_value("steward_controller_event_seconds_count", {"event": "CreateTopics"}) == 3
