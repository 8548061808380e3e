"""Snapshots of the metadata on a real node: written when they are due, and loaded by a controller that starts. Source: SnapshotGenerator."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller_core.model.broker import FeatureRange
from controller_core.model.quorum_events import Heartbeat
from controller_core.shell.kraft.features import SUPPORTED
from controller_core.shell.kraft.state_machine import KRaftStateMachine
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess
from kafka_log.files.snapshots import list_snapshots
from tests.controller_core.shell.kraft.memory_quorum import new_topic, registration
from tests.controller_core.shell.quorum.members import CLUSTER_ID, Member, members
from tests.waiting import until

SMALL_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.idle.interval.ms": "20",
    "controller.quorum.append.linger.ms": "0",
}


async def started(member: Member) -> KRaftStateMachine:
    """Start the node with its controller, and wait until it is active."""
    process = member.process = QuorumProcess(member.settings, NodeOptions(metrics_port=0), KRaftStateMachine)
    member._task = asyncio.create_task(process.run())
    await until(lambda: isinstance(process.state_machine, KRaftStateMachine))
    machine = process.state_machine
    assert isinstance(machine, KRaftStateMachine)
    await until(lambda: machine.controller.is_active)
    return machine


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    """The only controller of a cluster, with a small limit of the log."""
    (one,) = members(tmp_path, 1, SMALL_LOG)
    yield one
    await one.crash()


@pytest.mark.shows("C15", "F67")
async def test_a_controller_loads_its_snapshot_when_it_starts_again(member: Member) -> None:
    """The state after the restart is that before it."""
    machine = await started(member)
    features = tuple(FeatureRange(name, *levels) for name, levels in SUPPORTED.items())
    event = replace(registration(7), cluster_id=CLUSTER_ID, features=features)
    registered = await machine.controller.submit(event)
    await machine.controller.submit(Heartbeat(7, registered.broker_epoch, registered.broker_epoch))
    await machine.controller.submit(new_topic("orders", (7,), (7,)))
    before = await machine.controller.read()
    assert list(before.topic_ids) == ["orders"]
    folder = member.folder / "__cluster_metadata-0"
    needed = machine.controller.committed.end_offset
    await until(lambda: any(snapshot.offset >= needed for snapshot in list_snapshots(folder)))
    await member.crash()
    again = await started(member)

    assert again.controller.committed_image.topics == before.topics
    assert again.controller.committed_image.brokers == before.brokers
    assert list(again.controller.cluster.topics) == ["orders"]
    assert again.controller.cluster.features == machine.controller.cluster.features


@pytest.mark.slow
async def test_a_controller_registers_itself(member: Member) -> None:
    """KIP-919: DescribeCluster and upgrades of features need the registrations of controllers."""
    machine = await started(member)
    await until(lambda: 1 in machine.controller.committed_image.controllers)
    record = machine.controller.committed_image.controllers[1]

    assert [(endpoint.name, endpoint.port) for endpoint in record.end_points] == [
        (listener.listener, listener.port) for listener in member.settings.listeners
    ]
    assert {feature.name for feature in record.features} >= {"metadata.version", "kraft.version"}
