"""The loop of one tenure: decide, write, apply, tell; what is refused is read again and decided anew.

Sources: design.md (the one idea), ARCHITECTURE.md (how a tenure lives), C5, C6; invariants.md, ZooKeeper model of faults.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from controller_core.cluster.topics import TopicCreation
from controller_core.model.changes import DeletionQueued, DeletionStarted, Origin
from controller_core.model.cluster import Cluster
from controller_core.model.events import (
    AdvanceDeletions,
    AllocateProducerIds,
    AlterPartition,
    AlterReassignments,
    BrokersRead,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    Event,
    Heal,
    IsrChange,
    ReplicasRefused,
    TopicsRead,
)
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata
from controller_core.shell import controller as controller_module
from controller_core.shell.active import Defaults, OverloadedError, TenureLostError
from controller_core.shell.brokers.refusals import Retry
from controller_core.shell.controller import MAX_ATTEMPTS, Controller
from controller_core.shell.zookeeper import removal as removal_module
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from kafka_zookeeper.writes import MultiResult, Operation
from tests.controller_core_shell.tenures import Tenure, names, new_topic, settled
from tests.controller_core_shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core_shell.zookeeper.vocabulary import tp

LONG_MS = 60_000


@pytest.fixture
async def tenure(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """A tenure over brokers 1, 2 and 3."""
    tenure = Tenure(monkeypatch, 1, 2, 3)
    yield tenure
    await tenure.controller.close()
    assert set() == tenure.controller._tasks


def isr_wish(tenure: Tenure, partition: str, isr: tuple[int, ...]) -> AlterPartition:
    """The leader's wish for an ISR, as it knows the partition."""
    row = tenure.cluster.row_of(*tp(partition))
    assert row is not None
    columns = tenure.cluster.columns
    leader = int(columns.leader[row])
    change = IsrChange(tp(partition), int(columns.leader_epoch[row]), isr, int(columns.partition_epoch[row]))
    return AlterPartition(leader, tenure.cluster.brokers[leader].epoch, (change,))


async def test_the_reply_comes_after_the_write_and_after_brokers_are_told(tenure: Tenure) -> None:
    """Decision: changes are persisted, applied, announced; what follows is decided in the same turn; then the reply leaves."""
    creation = await tenure.create("orders", (1, 2), (2, 3))

    assert isinstance(creation, TopicCreation)
    assert creation.failure is None
    assert (1, 0, (1, 2)) == tenure.state("orders-0")
    assert (2, 0, (2, 3)) == tenure.state("orders-1")
    kinds = [type(send) for send in tenure.channels.sent]
    assert [SendLeaderAndIsr, SendLeaderAndIsr, SendLeaderAndIsr, SendMetadata] == kinds


async def test_what_was_refused_is_read_again_and_decided_anew(tenure: Tenure) -> None:
    """Wire-facts, f: a stale version must not leave a partition without a leader."""
    await tenure.create("orders", (1, 2, 3), (1, 2, 3))
    tenure.isr_by("orders-0", (1, 3))

    await tenure.controller.submit(BrokersRead((tenure.broker(2), tenure.broker(3))))

    # Of the ISR that the leader had written before it died, not of the one that we knew.
    assert (3, 1, (3,)) == tenure.state("orders-0")
    assert (2, 1, (2, 3)) == tenure.state("orders-1")


async def test_an_event_that_others_write_against_is_given_up_and_the_tenure_goes_on(tenure: Tenure) -> None:
    """A limit on everything: the caller gets a retriable error."""
    await tenure.create("orders", (1, 2))
    wish = isr_wish(tenure, "orders-0", (1,))
    writes = 0

    def somebody_writes() -> None:
        nonlocal writes
        writes += 1
        path = paths.topic("orders")
        tenure.server.put(path, tenure.server.at(path).data)
        tenure.server.before_writes.append(somebody_writes)

    tenure.server.before_writes.append(somebody_writes)
    with pytest.raises(OverloadedError, match="AlterReassignments was refused"):
        await tenure.controller.submit(AlterReassignments({tp("orders-0"): (2, 3)}))
    tenure.server.before_writes.clear()

    assert MAX_ATTEMPTS == writes
    assert not tenure.controller.has_ended
    answers = await tenure.controller.submit(wish)
    assert (1,) == answers[tp("orders-0")].isr


async def test_the_clusters_settings_are_waited_for(tenure: Tenure) -> None:
    """CreateTopics with the cluster's defaults: no other numbers will do."""
    assert await tenure.controller.known_defaults(1) is None
    waiting = asyncio.create_task(tenure.controller.known_defaults(LONG_MS))
    await settled()

    tenure.controller.learn(Defaults(3, 2))

    assert Defaults(3, 2) == await waiting
    assert Defaults(3, 2) == await tenure.controller.known_defaults(0)


async def test_a_broker_that_allows_unclean_leaders_in_its_own_file_allows_them_by_default(tenure: Tenure) -> None:
    """C7: the default counts where the topic says nothing; a file that says nothing takes it back."""
    tenure.controller.learn(Defaults(unclean_leader_election_enable=True))
    await settled()
    assert tenure.cluster.allows_unclean("orders")

    tenure.controller.learn(Defaults())
    await settled()
    assert not tenure.cluster.allows_unclean("orders")


async def test_who_waits_for_the_settings_hears_when_the_tenure_ends(tenure: Tenure) -> None:
    """NOT_CONTROLLER says where to go on; a timeout would not."""
    waiting = asyncio.create_task(tenure.controller.known_defaults(LONG_MS))
    await settled()

    await tenure.controller.close()

    with pytest.raises(TenureLostError):
        await waiting


async def test_what_a_broker_refused_is_told_again_under_a_higher_leader_epoch(tenure: Tenure) -> None:
    """C12: a replica that was never made would stay out of sync for good."""
    await tenure.create("orders", (1, 2), (1, 2))
    tenure.channels.sent.clear()

    tenure.channels.refused(Retry(0, ReplicasRefused(2, {tp("orders-1"): 0})))
    await settled()

    assert (1, 0, (1, 2)) == tenure.state("orders-0")
    assert (1, 1, (1, 2)) == tenure.state("orders-1")
    told = [send.broker for send in tenure.channels.sent if isinstance(send, SendLeaderAndIsr)]
    assert [1, 2] == told


async def test_what_a_broker_refused_is_told_again_though_others_write_meanwhile(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No look of the tick's would find it: whoever gave it up would leave it out of sync."""
    monkeypatch.setattr(controller_module, "TICK_S", 0)
    await tenure.create("orders", (1, 2))
    writes = 0

    def somebody_writes() -> None:
        nonlocal writes
        writes += 1
        tenure.isr_by("orders-0", (1, 2))
        if writes < 2 * MAX_ATTEMPTS:
            tenure.server.before_writes.append(somebody_writes)

    tenure.server.before_writes.append(somebody_writes)
    tenure.channels.refused(Retry(0, ReplicasRefused(2, {tp("orders-0"): 0})))
    await settled(2000)

    assert 2 * MAX_ATTEMPTS == writes
    assert (1, 1, (1, 2)) == tenure.state("orders-0")


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_an_isr_whose_write_was_not_heard_of_is_written_once(tenure: Tenure, fault: Fault) -> None:
    """Invariants.md: ConnectionLoss with the write done and with it not done. C4: the partition epoch grows by one."""
    await tenure.create("orders", (1, 2))
    tenure.server.faults.append(fault)

    answers = await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert 1 == answers[tp("orders-0")].partition_epoch
    assert (1, 0, (1,)) == tenure.state("orders-0")


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_topic_whose_making_was_not_heard_of_is_made_once_and_answered_as_made(
    tenure: Tenure, fault: Fault
) -> None:
    """So the caller is not told that its own topic exists already."""
    tenure.server.faults.append(fault)

    creation = await tenure.create("orders", (1, 2))

    assert creation.failure is None
    assert creation.topic_id == tenure.cluster.topics["orders"].topic_id
    assert (1, 0, (1, 2)) == tenure.state("orders-0")


@pytest.mark.parametrize("trouble", [Fault.DONE, Fault.NOT_DONE, None], ids=["done", "not done", "refused in part"])
async def test_what_an_election_did_in_its_first_attempt_is_answered_as_done(
    tenure: Tenure, trouble: Fault | None
) -> None:
    """KIP-460: ELECTION_NOT_NEEDED is for a partition that needed none when it was asked for."""
    await tenure.create("orders", (1, 2), (1, 2))
    await tenure.controller.submit(BrokersRead((tenure.broker(2),)))
    await tenure.controller.submit(BrokersRead((tenure.broker(1), tenure.broker(2))))
    for partition in ("orders-0", "orders-1"):
        await tenure.controller.submit(isr_wish(tenure, partition, (2, 1)))
    if trouble is not None:
        tenure.server.faults.append(trouble)
    else:
        tenure.server.before_writes.append(lambda: tenure.isr_by("orders-1", (1, 2)))

    results = await tenure.controller.submit(ElectLeaders(names("orders-0", "orders-1")))

    assert dict.fromkeys(names("orders-0", "orders-1")) == results
    assert (1, 2, (2, 1)) == tenure.state("orders-0")
    assert 1 == tenure.state("orders-1")[0]


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_no_producer_id_is_handed_out_twice(tenure: Tenure, fault: Fault) -> None:
    """KIP-730: a block whose write was not heard of is lost rather than given to two brokers."""
    event = AllocateProducerIds(1, tenure.cluster.brokers[1].epoch)
    first = await tenure.controller.submit(event)
    tenure.server.faults.append(fault)
    second = await tenure.controller.submit(event)

    assert 0 == first.first
    assert (1000 if fault is Fault.NOT_DONE else 2000) == second.first


async def test_somebody_elses_topic_of_that_name_is_taken_in_and_the_caller_told(tenure: Tenure) -> None:
    """A broker made it by itself at the same moment (auto-creation)."""
    found = b'{"partitions":{"0":[3]},"version":3}'
    tenure.server.before_writes.append(lambda: tenure.server.put(paths.topic("orders"), found))

    creation = await tenure.create("orders", (1, 2))

    assert ErrorCode.TOPIC_ALREADY_EXISTS == creation.failure.code
    assert (3, 0, (3,)) == tenure.state("orders-0")


async def test_when_the_fence_does_not_hold_nothing_is_written_and_the_tenure_is_over(tenure: Tenure) -> None:
    """C5, C6: another controller has raised the epoch."""
    await tenure.create("orders", (1, 2))
    before = tenure.server.at(paths.partition_state("orders", 0)).data
    tenure.server.put(paths.CONTROLLER_EPOCH, b"10")

    with pytest.raises(TenureLostError):
        await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert "another controller" in await tenure.controller.ended()
    assert before == tenure.server.at(paths.partition_state("orders", 0)).data
    with pytest.raises(TenureLostError):
        await tenure.controller.submit(Heal())


async def test_a_session_that_ends_in_the_middle_of_an_event_ends_the_tenure(tenure: Tenure) -> None:
    """What was sent may be done or not, and nobody may look any more: the next controller will."""
    await tenure.create("orders", (1, 2))
    wish = isr_wish(tenure, "orders-0", (1,))
    tenure.server.before_writes.append(tenure.session.expire)

    with pytest.raises(TenureLostError):
        await tenure.controller.submit(wish)

    assert tenure.controller.has_ended
    row = tenure.cluster.row_of("orders", 0)
    assert row is not None
    assert (1, 2) == tenure.cluster.columns.isr_of(row)


async def test_reads_that_are_given_up_end_the_tenure(tenure: Tenure) -> None:
    """Kafka_zookeeper.session: a read is repeated by itself; when that is given up, nobody knows what is written."""
    await tenure.create("orders", (1, 2))
    tenure.server.faults += [Fault.NOT_DONE, Fault.READ_LOST]

    with pytest.raises(TenureLostError, match="broke again"):
        await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert "broke again" in await tenure.controller.ended()


async def test_a_caller_that_hangs_up_leaves_the_event_to_its_end(tenure: Tenure) -> None:
    """Between a write and its application nothing may stop: memory would differ from what is written."""
    await tenure.create("orders", (1, 2))
    caller = asyncio.create_task(tenure.controller.submit(isr_wish(tenure, "orders-0", (1,))))
    hung_up = asyncio.Event()
    tenure.server.before_writes.append(lambda: (caller.cancel(), hung_up.set()))
    await hung_up.wait()
    await settled()

    assert caller.cancelled()
    assert (1, 0, (1,)) == tenure.state("orders-0")


async def test_callers_of_a_tenure_that_is_closed_are_told_so(tenure: Tenure) -> None:
    """Their own tasks were not cancelled: a CancelledError would close their clients' connections."""
    await tenure.create("orders", (1, 2))
    writing = asyncio.Event()
    tenure.server.before_writes.append(writing.set)
    running = asyncio.create_task(tenure.controller.submit(isr_wish(tenure, "orders-0", (1,))))
    waiting = asyncio.create_task(tenure.controller.submit(Heal()))
    await writing.wait()

    await tenure.controller.close()

    for caller in (running, waiting):
        with pytest.raises(TenureLostError):
            await caller
    assert tenure.channels.closed


def failing_decisions(kind: type[Event]) -> Callable[[Cluster, Event], object]:
    """Decide as ever, but for one kind of event."""
    decide = controller_module.decide

    def decide_or_fail(cluster: Cluster, event: Event) -> object:
        assert not isinstance(event, kind), "C2: an ISR outside its replicas"
        return decide(cluster, event)

    return decide_or_fail


async def test_a_defect_in_a_decision_ends_the_tenure_and_nothing_else(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Style.md, habit 11: invariants are kept in production; whoever holds the cluster next reads everything anew."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(DeleteTopics))

    with pytest.raises(AssertionError, match="C2"):
        await tenure.controller.submit(DeleteTopics(("orders",)))

    assert "C2: an ISR outside its replicas" in await tenure.controller.ended()
    assert ["unexpected failure"] == [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]


async def test_the_first_event_of_a_tenure_may_fail_without_taking_the_process_with_it(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tenure has ended then, and says why."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(Heal))
    await tenure.controller.start(Heal())

    assert "C2" in await tenure.controller.ended()


async def test_events_of_other_partitions_go_on_while_one_is_written(tenure: Tenure) -> None:
    """Design, pipelining: the loop never waits for ZooKeeper with everything."""
    await tenure.create("a", (1, 2))
    await tenure.create("b", (2, 1))
    order: list[str] = []
    held, goes_on = tenure.session.multi, asyncio.Event()

    async def slow_for_a(operations: Sequence[Operation]) -> MultiResult:
        if any("/topics/a/" in operation.path for operation in operations):
            await goes_on.wait()
        return await held(operations)

    tenure.session.multi = slow_for_a  # type: ignore[method-assign]

    async def submit(partition: str) -> None:
        await tenure.controller.submit(isr_wish(tenure, partition, (int(partition == "b-0") + 1,)))
        order.append(partition)

    first, second = (asyncio.create_task(submit(partition)) for partition in ("a-0", "b-0"))
    await second
    goes_on.set()
    await first

    assert ["b-0", "a-0"] == order
    assert (1, 0, (1,)) == tenure.state("a-0")
    assert (2, 0, (2,)) == tenure.state("b-0")


async def test_a_look_reads_within_its_turn(tenure: Tenure) -> None:
    """Read outside it, a list of topics could miss one that is just being written, and take it for removed."""
    reading, read_on = asyncio.Event(), asyncio.Event()

    async def read() -> Event | None:
        reading.set()
        await read_on.wait()
        return TopicsRead((), ())

    creating = asyncio.create_task(tenure.create("first", (1,)))
    await asyncio.sleep(0)
    look = asyncio.create_task(tenure.controller.look(read))
    later = asyncio.create_task(tenure.create("second", (1,)))
    await reading.wait()
    await settled()

    assert creating.done()
    assert ["first"] == list(tenure.cluster.topics)
    assert not later.done()
    read_on.set()
    await look
    assert (await later).failure is None


async def test_a_look_that_finds_nothing_decides_nothing(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look too many changes nothing."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(Heal))

    async def read() -> Event | None:
        return None

    await tenure.controller.look(read)
    assert not tenure.controller.has_ended


async def test_a_part_that_was_written_is_followed_up_when_another_was_refused(tenure: Tenure) -> None:
    """It is not decided again with the rest: its leaders would wait for the next look at everything."""
    there = b'{"partitions":{"0":[3]},"version":3}'
    tenure.server.before_writes += [lambda: None, lambda: tenure.server.put(paths.topic("second"), there)]

    results = await tenure.controller.submit(CreateTopics((new_topic("first", (1,)), new_topic("second", (2,)))))

    assert results["first"].failure is None
    assert ErrorCode.TOPIC_ALREADY_EXISTS == results["second"].failure.code
    assert (1, 0, (1,)) == tenure.state("first-0")


async def test_moves_of_one_topic_begin_when_those_of_another_were_refused(tenure: Tenure) -> None:
    """The same for moves, whose second decision finds the first topic on its way already."""
    await tenure.create("first", (1,))
    await tenure.create("second", (1,))
    path = paths.topic("second")
    tenure.server.before_writes += [
        lambda: None,
        lambda: tenure.server.put(path, tenure.server.at(path).data),
    ]

    await tenure.controller.submit(AlterReassignments({tp("first-0"): (2,), tp("second-0"): (2,)}))

    assert (1, 1, (1,)) == tenure.state("first-0")
    assert (1, 1, (1,)) == tenure.state("second-0")


async def test_a_deletion_is_told_to_brokers_although_the_removal_of_another_is_not_known_to_be_done(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stand in one decision; the next one finds the deletion begun, and would never ask brokers for it."""
    await tenure.create("first", (1,))
    await tenure.create("second", (2,))
    tenure.controller._carry_out([DeletionStarted("first", {}), DeletionQueued(("second",), Origin.OBSERVED)])
    monkeypatch.setattr(removal_module, "MAX_TRIES", 1)
    tenure.server.faults.append(Fault.NOT_DONE)

    await tenure.controller.submit(AdvanceDeletions())

    assert ["second"] == list(tenure.cluster.topics)
    assert [names("second-0")] == [send.partitions for send in tenure.channels.deletions()]


async def test_what_follows_is_put_off_when_it_is_refused_and_the_reply_is_not(
    tenure: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller's topics are made; one of them has a state that nobody can read, and the others get their leaders."""
    tenure.server.before_writes += [
        lambda: None,
        lambda: None,
        lambda: tenure.server.put(paths.partition_state("broken", 0), b"garbage"),
    ]
    results = await tenure.controller.submit(CreateTopics((new_topic("broken", (1,)), new_topic("sound", (1,)))))

    assert [None, None] == [result.failure for result in results.values()]
    assert (1, 0, (1,)) == tenure.state("sound-0")
    assert ["Heal"] == [record.event for record in caplog.records if "put off" in record.getMessage()]
    assert not tenure.controller.has_ended


async def test_a_state_that_nobody_can_read_is_not_tried_again_and_again(tenure: Tenure) -> None:
    """Nothing new was found: to decide anew would decide the same."""
    await tenure.create("orders", (1, 2))
    tenure.server.put(paths.partition_state("orders", 0), b"garbage")
    tenure.server.lines.clear()

    with pytest.raises(OverloadedError, match="cannot be read"):
        await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert 1 == tenure.server.lines.count("multi")


async def test_every_tick_looks_at_everything_whatever_became_of_the_last(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A safety net must not tear: one look that is refused keeps none of the others from being taken."""
    monkeypatch.setattr(controller_module, "TICK_S", 0.0)
    await tenure.create("orders", (1, 2))
    tenure.server.put(paths.partition_state("orders", 0), b"garbage")
    await tenure.controller.submit(BrokersRead((tenure.broker(2), tenure.broker(3))))
    seen: list[str] = []
    enough = asyncio.Event()
    decide = controller_module.decide

    def decide_and_note(cluster: Cluster, event: Event) -> object:
        seen.append(type(event).__name__)
        if seen.count("AdvanceDeletions") == 3:
            enough.set()
        return decide(cluster, event)

    monkeypatch.setattr(controller_module, "decide", decide_and_note)
    ticking = tenure.controller.spawn(tenure.controller.tick(), "tick")
    waiting = asyncio.create_task(enough.wait())
    await asyncio.wait([ticking, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()

    assert not ticking.done()
    assert ["Heal", "AdvanceMoves", "AdvanceDeletions"] == seen[:3]


async def test_waiting_for_a_topic_to_go_ends_when_it_goes(tenure: Tenure) -> None:
    """DeleteTopics answers after the end; the same name made again is another topic."""
    await tenure.create("orders", (1, 2))
    await tenure.controller.submit(DeleteTopics(("orders",)))
    waiting = asyncio.create_task(tenure.controller.topic_gone("orders", LONG_MS))
    await settled()
    assert not waiting.done()

    tenure.channels.answer_deletions()
    tenure.channels.sent.clear()
    again = asyncio.create_task(tenure.create("orders", (3,)))

    assert await waiting
    assert (await again).failure is None
    assert not await tenure.controller.topic_gone("orders", 0)


async def test_a_topic_that_is_not_there_is_gone(tenure: Tenure) -> None:
    """Nothing to wait for."""
    assert await tenure.controller.topic_gone("never", LONG_MS)


async def test_those_who_wait_for_a_topic_are_told_when_the_tenure_ends(tenure: Tenure) -> None:
    """The next controller goes on with the deletion; its caller asks there."""
    await tenure.create("orders", (1, 2))
    waiting = asyncio.create_task(tenure.controller.topic_gone("orders", LONG_MS))
    await settled()
    await tenure.controller.close()

    with pytest.raises(TenureLostError):
        await waiting


async def test_whoever_keeps_connections_hears_of_brokers_that_left(tenure: Tenure) -> None:
    """The relay's connections to a broker end with its registration."""
    left: list[int] = []
    tenure.controller.broker_left = lambda broker: left.append(broker.id)

    await tenure.controller.submit(BrokersRead((tenure.broker(1), tenure.broker(3))))

    assert [2] == left
    assert tenure.channels.followed > 1


async def test_a_broker_that_knows_a_newer_controller_ends_the_tenure(tenure: Tenure) -> None:
    """Wire-facts, gotcha 6: a top-level STALE_CONTROLLER_EPOCH means that we are deposed."""
    tenure.channels.deposed()

    assert "a broker knows a newer controller" == await tenure.controller.ended()


async def test_an_end_is_told_once(tenure: Tenure) -> None:
    """The first reason is the reason."""
    controller: Controller = tenure.controller
    controller.end("first")
    controller.end("second")

    assert "first" == await controller.ended()
