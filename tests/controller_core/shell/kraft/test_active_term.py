"""Active terms of KRaft mode: applied at once, answered at the commit, forgotten when the leadership is lost (ADR 59)."""

import asyncio
from collections.abc import Awaitable
from uuid import UUID

import pytest

from controller_core.metadata.payloads import payloads
from controller_core.metadata.record_decision import RecordDecision
from controller_core.metadata.replayed_records import partition_record
from controller_core.model import Cluster, TopicPartition, events, quorum_events
from controller_core.shell.active import RefusedWriteError, TermEndedError
from controller_core.shell.kraft import active_term, follower
from kafka_log.format.batches import with_offsets
from kafka_metadata import records
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import METADATA_VERSION
from kafka_metadata.records import MetadataRecord, PartitionRecord, ResourceType
from kafka_wire import ErrorCode
from tests.controller_core.shell.kraft.memory_quorum import Batch, Member, SharedLog, new_topic, registration
from tests.waiting import until


def states(cluster: Cluster) -> dict[TopicPartition, PartitionRecord]:
    """Return the whole state of all partitions."""
    rows = cluster.columns.used()
    return {
        name: partition_record(cluster, row) for name, row in zip(cluster.names_of(rows), rows.tolist(), strict=True)
    }


async def begun(work: Awaitable[object]) -> asyncio.Task[object]:
    """Start work, and let it run up to its first wait."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


@pytest.mark.shows("C18")
async def test_a_decision_is_applied_at_once_and_answered_when_it_is_committed(log: SharedLog, active: Member) -> None:
    """ControllerWriteEvent of QuorumController: the purgatory answers."""
    await active.start_broker(1)
    log.commits_at_once = False

    creation = await begun(active.controller.submit(new_topic("orders", (1,))))

    assert list(active.controller.cluster.topics) == ["orders"]
    assert active.controller.image.topic("orders") is not None
    assert active.controller.committed_image.topic("orders") is None
    assert not creation.done()

    log.commit()
    answers = await creation
    assert answers["orders"].failure is None
    assert active.controller.committed_image.topic("orders") is not None


@pytest.mark.shows("C18")
async def test_an_answer_that_changes_nothing_waits_for_what_it_rests_on(log: SharedLog, active: Member) -> None:
    """QuorumController: "a read after all", which may have seen what is not committed."""
    await active.start_broker(1)
    log.commits_at_once = False
    first = await begun(active.controller.submit(new_topic("orders", (1,))))
    second = await begun(active.controller.submit(new_topic("orders", (1,))))

    assert not second.done()

    log.commit()
    assert (await second)["orders"].failure.code is ErrorCode.TOPIC_ALREADY_EXISTS
    await first


@pytest.mark.shows("C16")
async def test_the_epoch_of_a_broker_is_the_offset_of_its_registration(log: SharedLog, active: Member) -> None:
    """KIP-631; also for a second incarnation, whose predecessor's partitions leave first."""
    await active.start_broker(1)
    await active.start_broker(2)
    await active.controller.submit(new_topic("orders", (1, 2), (2, 1)))
    begin = log.end_offset

    epoch = (await active.controller.submit(registration(1, incarnation=2))).broker_epoch

    assert epoch == log.end_offset - 1
    assert epoch == begin + 2
    assert active.controller.committed_image.brokers[1].broker_epoch == epoch


async def test_a_term_whose_leadership_is_lost_forgets_what_was_not_committed(log: SharedLog, active: Member) -> None:
    """The state is rebuilt from what is committed; who waits learns that the term has ended."""
    await active.start_broker(1)
    await active.controller.submit(new_topic("kept", (1,)))
    log.commits_at_once = False
    creation = await begun(active.controller.submit(new_topic("lost", (1,))))

    log.elect(None)

    with pytest.raises(TermEndedError):
        await creation
    assert not active.controller.is_active
    assert list(active.controller.cluster.topics) == ["kept"]
    assert active.controller.image is active.controller.committed_image
    with pytest.raises(TermEndedError):
        await active.controller.submit(new_topic("later", (1,)))


@pytest.mark.shows("C15")
async def test_a_standby_has_the_state_of_the_active_controller(log: SharedLog, active: Member) -> None:
    """Through decisions about brokers, topics, failures and a transaction; and another controller that begins later."""
    standby = log.add(102)
    for broker in (1, 2, 3):
        await active.start_broker(broker)
    await active.controller.submit(new_topic("orders", (1, 2, 3), (2, 3, 1)))
    epoch = active.controller.cluster.brokers[1].epoch
    await active.controller.submit(quorum_events.FenceBroker(1, epoch))
    late = log.add(103)

    expected = states(active.controller.cluster)
    assert expected[TopicPartition("orders", 0)].leader == 2
    for member in (standby, late):
        assert states(member.controller.cluster) == expected
        assert member.controller.cluster.brokers == active.controller.cluster.brokers
        assert member.controller.cluster.features == active.controller.cluster.features
        assert member.controller.committed_image == active.controller.committed_image


async def test_another_controller_goes_on_where_the_active_one_was_lost(log: SharedLog, active: Member) -> None:
    """Fail-over: each unfenced broker gets a whole session, and what was committed counts."""
    standby = log.add(102)
    epoch = await active.start_broker(1)
    await active.start_broker(2)
    await active.controller.submit(new_topic("orders", (1, 2)))
    log.now_ms += 8_000

    log.elect(102)
    log.now_ms += 8_000

    assert standby.controller.sessions.expired(log.now_ms) == []
    assert await standby.controller.submit(quorum_events.FenceBroker(1, epoch)) is None
    assert states(standby.controller.cluster)[TopicPartition("orders", 0)].leader == 2
    assert states(active.controller.cluster) == states(standby.controller.cluster)


async def test_a_leader_that_is_elected_again_begins_a_new_term(log: SharedLog, active: Member) -> None:
    """Also where it never learned of the epoch in between: what it had not committed is gone."""
    await active.start_broker(1)
    log.commits_at_once = False
    creation = await begun(active.controller.submit(new_topic("lost", (1,))))
    log.epoch += 1  # an epoch of which this node hears only together with the next one
    log.elect(101)
    log.commits_at_once = True

    with pytest.raises(TermEndedError):
        await creation
    assert active.controller.is_active
    assert list(active.controller.cluster.topics) == []
    assert active.controller.cluster.controller_epoch == log.epoch
    await active.controller.submit(new_topic("kept", (1,)))
    assert list(active.controller.cluster.topics) == ["kept"]


async def test_a_write_is_decided_on_the_newest_image(log: SharedLog, active: Member) -> None:
    """The second write sees the first one before it is committed."""
    log.commits_at_once = False
    seen: list[str | None] = []

    def decide(image: MetadataImage) -> RecordDecision:
        seen.append(image.config_values(ResourceType.BROKER, "1").get("a"))
        return RecordDecision((records.ConfigRecord(ResourceType.BROKER, "1", "a", str(len(seen))),), len(seen))

    writes = [await begun(active.controller.write(decide)) for _ in range(2)]
    log.commit()

    assert await asyncio.gather(*writes) == [1, 2]
    assert seen == [None, "1"]
    assert (await active.controller.read()).config_values(ResourceType.BROKER, "1") == {"a": "2"}


async def test_records_that_contradict_the_image_end_the_node_that_decided_them(active: Member) -> None:
    """A fatal fault in Kafka: the state would differ from the log."""
    with pytest.raises(TermEndedError):
        await active.controller.write(lambda _: RecordDecision((records.RemoveTopicRecord(UUID(int=7)),), None))

    assert "no topic with the id" in str(active.failure)


async def test_an_atomic_change_that_is_too_large_is_refused_and_changes_nothing(active: Member) -> None:
    """POLICY_VIOLATION, as of Kafka's CreateTopics with 11,000 records."""
    await active.start_broker(1)
    end = active.end_offset

    with pytest.raises(RefusedWriteError) as refused:
        await active.controller.submit(new_topic("large", *[(1,)] * 10_000))

    assert refused.value.failure.code is ErrorCode.POLICY_VIOLATION
    assert active.end_offset == end
    assert list(active.controller.cluster.topics) == []
    await active.controller.submit(new_topic("largest", *[(1,)] * 9_999))
    assert list(active.controller.cluster.topics) == ["largest"]


@pytest.mark.slow
async def test_the_fence_of_a_broker_with_many_partitions_is_split(
    log: SharedLog, active: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of 5,000 partitions (ADR 67), the registration's change last; the standby follows in slices."""
    monkeypatch.setattr(follower, "SLICE_S", 0.01)
    standby = log.add(102)
    for broker in (1, 2):
        await active.start_broker(broker)
    for name in ("a", "b"):
        await active.controller.submit(new_topic(name, *[(1, 2)] * 6_000))
    before = len(log.batches)

    await active.controller.submit(quorum_events.FenceBroker(1, active.controller.cluster.brokers[1].epoch))
    await until(lambda: not standby.controller.follower.is_busy)

    sizes = [batch.end_offset - batch.base_offset for batch in log.batches[before:]]
    assert sizes == [5_000, 5_000, 2_000, 1]
    assert {state.leader for state in states(standby.controller.cluster).values()} == {2}
    assert standby.controller.cluster.fenced == {1}


async def test_the_first_controller_writes_the_records_of_bootstrap(log: SharedLog) -> None:
    """In a transaction, of which nothing counts before its end; ELR needs min.insync.replicas (KIP-966)."""
    log.commits_at_once = False
    member, standby = log.add(101), log.add(102)
    log.elect(101)

    assert member.controller.cluster.features[METADATA_VERSION] == 30
    assert member.controller.cluster.min_isr_default == 1
    assert standby.controller.cluster.features == {}

    log.commit()
    assert standby.controller.cluster.features == member.controller.cluster.features
    assert standby.controller.cluster.min_isr_default == 1


@pytest.mark.shows("C21")
async def test_a_transaction_that_a_controller_left_open_is_aborted(log: SharedLog) -> None:
    """ActivationRecordsGenerator; a standby that follows has nothing of it either."""
    first, second = log.add(101), log.add(102)
    log.commits_at_once = False
    log.elect(101)
    log.batches[0:] = [part_of_a_transaction(log)]
    log.commit()
    log.commits_at_once = True
    log.elect(102)
    await asyncio.sleep(0)

    for member in (first, second):
        assert member.controller.cluster.features == {METADATA_VERSION: 30, "eligible.leader.replicas.version": 1}
        assert member.controller.committed.transaction is None
        assert member.controller.committed_image.config_values(ResourceType.BROKER, "7") == {}


def part_of_a_transaction(log: SharedLog) -> Batch:
    """Return a batch that begins a transaction and does not end it."""
    found: tuple[MetadataRecord, ...] = (
        records.BeginTransactionRecord("torn"),
        records.ConfigRecord(ResourceType.BROKER, "7", "a", "1"),
    )
    made = payloads([found], 30, 0, is_atomic=True)
    assert isinstance(made, list)
    return Batch(with_offsets(made[0].data, 0, log.epoch), 0, len(found))


async def test_a_new_cluster_without_a_metadata_version_ends_the_node(log: SharedLog) -> None:
    """A directory that was formatted by hand."""
    member = log.add(101, bootstrap=())
    log.elect(101)

    assert "metadata.version" in str(member.failure)
    assert not member.controller.is_active


async def test_a_wait_ends_when_its_condition_is_committed(log: SharedLog, active: Member) -> None:
    """`topic_removed` of ZooKeeper mode's handlers: in KRaft mode one record removes a topic."""
    await active.start_broker(1)
    await active.controller.submit(new_topic("orders", (1,)))
    log.commits_at_once = False
    deletion = await begun(active.controller.submit(events.DeleteTopics(("orders",))))
    removed = await begun(active.controller.topic_removed("orders", 60_000))

    assert not removed.done()

    log.commit()
    assert await removed is True
    await deletion


async def test_a_decision_that_cannot_be_applied_ends_the_node(active: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are in the log, so that the state is not that of the log any more: a defect."""

    def broken(_cluster: Cluster, _change: object) -> None:
        raise ZeroDivisionError("a defect")

    await active.start_broker(1)
    monkeypatch.setattr(active_term, "apply", broken)

    with pytest.raises(TermEndedError):
        await active.controller.submit(new_topic("orders", (1,)))
    assert isinstance(active.failure, ZeroDivisionError)
