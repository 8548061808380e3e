"""Refused writes: the state is read again, the event is decided again, and committed parts have their follow-ups.

Sources: ARCHITECTURE.md; protocol notes, Z51.
"""

import pytest

from controller_core.model import Origin
from controller_core.model.decision import SendLeaderAndIsr
from controller_core.model.events import AlterReassignments, CreateTopics
from controller_core.model.zookeeper_changes import DeletionQueued, DeletionStarted
from controller_core.model.zookeeper_events import AdvanceDeletions, BrokersRead, LeaderAndIsrRejected
from controller_core.shell import controller as controller_module
from controller_core.shell.active import OverloadedError
from controller_core.shell.brokers.answers import Retry
from controller_core.shell.controller import MAX_ATTEMPTS
from controller_core.shell.zookeeper import removal as removal_module
from kafka_wire import ErrorCode
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term, isr_request, names, new_topic, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp


async def test_a_refused_write_is_read_and_decided_again(term: Term) -> None:
    """Protocol notes, Z51: a stale version must not leave a partition without a leader."""
    await term.create("orders", (1, 2, 3), (1, 2, 3))
    term.isr_by("orders-0", (1, 3))

    await term.controller.submit(BrokersRead((term.broker(2), term.broker(3))))

    # From the ISR that the leader had written before it failed, not from the one in memory.
    assert term.state("orders-0") == (3, 1, (3,))
    assert term.state("orders-1") == (2, 1, (2, 3))


async def test_an_event_with_repeated_write_conflicts_fails_and_the_term_continues(term: Term) -> None:
    """A limit on everything: the caller gets a retriable error."""
    await term.create("orders", (1, 2))
    request = isr_request(term, "orders-0", (1,))
    writes = 0

    def conflict() -> None:
        nonlocal writes
        writes += 1
        path = paths.topic("orders")
        term.server.put(path, term.server.at(path).data)
        term.server.before_writes.append(conflict)

    term.server.before_writes.append(conflict)
    with pytest.raises(OverloadedError, match="AlterReassignments was refused"):
        await term.controller.submit(AlterReassignments({tp("orders-0"): (2, 3)}))
    term.server.before_writes.clear()

    assert writes == MAX_ATTEMPTS
    assert not term.controller.has_ended
    answers = await term.controller.submit(request)
    assert answers[tp("orders-0")].isr == (1,)


@pytest.mark.shows("C12", "D5")
async def test_a_rejected_leader_and_isr_is_sent_again_under_a_higher_leader_epoch(term: Term) -> None:
    """C12: a replica that was never created would stay out of sync."""
    await term.create("orders", (1, 2), (1, 2))
    term.channels.sent.clear()

    term.channels.refused(Retry(0, LeaderAndIsrRejected(2, {tp("orders-1"): 0})))
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 2))
    assert term.state("orders-1") == (1, 1, (1, 2))
    notified = [send.broker for send in term.channels.sent if isinstance(send, SendLeaderAndIsr)]
    assert notified == [1, 2]


async def test_a_rejected_leader_and_isr_is_sent_again_despite_write_conflicts(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No periodic check would find it: without the retry the replica would stay out of sync."""
    monkeypatch.setattr(controller_module, "TICK_S", 0)
    await term.create("orders", (1, 2))
    writes = 0

    def conflict() -> None:
        nonlocal writes
        writes += 1
        term.isr_by("orders-0", (1, 2))
        if writes < 2 * MAX_ATTEMPTS:
            term.server.before_writes.append(conflict)

    term.server.before_writes.append(conflict)
    term.channels.refused(Retry(0, LeaderAndIsrRejected(2, {tp("orders-0"): 0})))
    await settled(2000)

    assert writes == 2 * MAX_ATTEMPTS
    assert term.state("orders-0") == (1, 1, (1, 2))


async def test_a_topic_created_by_another_process_is_adopted_and_reported_to_the_caller(term: Term) -> None:
    """A broker created it at the same moment (auto-creation)."""
    found = b'{"partitions":{"0":[3]},"version":3}'
    term.server.before_writes.append(lambda: term.server.put(paths.topic("orders"), found))

    creation = await term.create("orders", (1, 2))

    assert creation.failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert term.state("orders-0") == (3, 0, (3,))


async def test_a_written_part_has_its_follow_up_when_another_part_was_refused(term: Term) -> None:
    """It is not decided again with the rest: without the follow-up its leaders would wait for the next periodic check."""
    there = b'{"partitions":{"0":[3]},"version":3}'
    term.server.before_writes += [lambda: None, lambda: term.server.put(paths.topic("second"), there)]

    results = await term.controller.submit(CreateTopics((new_topic("first", (1,)), new_topic("second", (2,)))))

    assert results["first"].failure is None
    assert results["second"].failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert term.state("first-0") == (1, 0, (1,))


async def test_moves_of_one_topic_begin_when_those_of_another_were_refused(term: Term) -> None:
    """The same for moves, whose second decision finds those of the first topic already started."""
    await term.create("first", (1,))
    await term.create("second", (1,))
    path = paths.topic("second")
    term.server.before_writes += [
        lambda: None,
        lambda: term.server.put(path, term.server.at(path).data),
    ]

    await term.controller.submit(AlterReassignments({tp("first-0"): (2,), tp("second-0"): (2,)}))

    assert term.state("first-0") == (1, 1, (1,))
    assert term.state("second-0") == (1, 1, (1,))


async def test_a_deletion_is_sent_to_brokers_although_the_removal_of_another_topic_is_unknown(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are in one decision; the next decision finds the deletion started, and would never send its requests."""
    await term.create("first", (1,))
    await term.create("second", (2,))
    await term.controller._apply_committed([DeletionStarted("first", {}), DeletionQueued(("second",), Origin.OBSERVED)])
    monkeypatch.setattr(removal_module, "MAX_TRIES", 1)
    term.server.faults.append(Fault.NOT_DONE)

    await term.controller.submit(AdvanceDeletions())

    assert list(term.cluster.topics) == ["second"]
    assert [send.partitions for send in term.channels.deletions()] == [names("second-0")]


async def test_a_refused_follow_up_is_deferred_and_the_reply_is_not(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """The client's topics are created; one of them has an unreadable state, and the others get their leaders."""
    term.server.before_writes += [
        lambda: None,
        lambda: None,
        lambda: term.server.put(paths.partition_state("broken", 0), b"garbage"),
    ]
    results = await term.controller.submit(CreateTopics((new_topic("broken", (1,)), new_topic("sound", (1,)))))

    assert [result.failure for result in results.values()] == [None, None]
    assert term.state("sound-0") == (1, 0, (1,))
    assert [vars(record)["event"] for record in caplog.records if "deferred" in record.getMessage()] == [
        "RepairPartitions"
    ]
    assert not term.controller.has_ended


async def test_an_event_with_an_unreadable_state_is_not_repeated(term: Term) -> None:
    """Nothing new was found: the same decision would follow."""
    await term.create("orders", (1, 2))
    term.server.put(paths.partition_state("orders", 0), b"garbage")
    term.server.lines.clear()

    with pytest.raises(OverloadedError, match="cannot be read"):
        await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert term.server.lines.count("multi") == 1
