"""What is refused is read again and decided anew, and what was written of it followed up.

Sources: ARCHITECTURE.md (the one idea, how a tenure lives); protocol notes, Z51.
"""

import pytest

from controller_core.model.changes import DeletionQueued, DeletionStarted, Origin
from controller_core.model.events import (
    AdvanceDeletions,
    AlterReassignments,
    BrokersRead,
    CreateTopics,
    LeaderAndIsrRejected,
)
from controller_core.model.sends import SendLeaderAndIsr
from controller_core.shell import controller as controller_module
from controller_core.shell.active import OverloadedError
from controller_core.shell.brokers.answers import Retry
from controller_core.shell.controller import MAX_ATTEMPTS
from controller_core.shell.zookeeper import removal as removal_module
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term, isr_request, names, new_topic, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp


async def test_what_was_refused_is_read_again_and_decided_anew(term: Term) -> None:
    """Protocol notes, Z51: a stale version must not leave a partition without a leader."""
    await term.create("orders", (1, 2, 3), (1, 2, 3))
    term.isr_by("orders-0", (1, 3))

    await term.controller.submit(BrokersRead((term.broker(2), term.broker(3))))

    # Of the ISR that the leader had written before it died, not of the one that we knew.
    assert term.state("orders-0") == (3, 1, (3,))
    assert term.state("orders-1") == (2, 1, (2, 3))


async def test_an_event_that_others_write_against_is_given_up_and_the_tenure_goes_on(term: Term) -> None:
    """A limit on everything: the caller gets a retriable error."""
    await term.create("orders", (1, 2))
    wish = isr_request(term, "orders-0", (1,))
    writes = 0

    def somebody_writes() -> None:
        nonlocal writes
        writes += 1
        path = paths.topic("orders")
        term.server.put(path, term.server.at(path).data)
        term.server.before_writes.append(somebody_writes)

    term.server.before_writes.append(somebody_writes)
    with pytest.raises(OverloadedError, match="AlterReassignments was refused"):
        await term.controller.submit(AlterReassignments({tp("orders-0"): (2, 3)}))
    term.server.before_writes.clear()

    assert writes == MAX_ATTEMPTS
    assert not term.controller.has_ended
    answers = await term.controller.submit(wish)
    assert answers[tp("orders-0")].isr == (1,)


@pytest.mark.shows("C12", "D5")
async def test_what_a_broker_refused_is_told_again_under_a_higher_leader_epoch(term: Term) -> None:
    """C12: a replica that was never made would stay out of sync for good."""
    await term.create("orders", (1, 2), (1, 2))
    term.channels.sent.clear()

    term.channels.refused(Retry(0, LeaderAndIsrRejected(2, {tp("orders-1"): 0})))
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 2))
    assert term.state("orders-1") == (1, 1, (1, 2))
    told = [send.broker for send in term.channels.sent if isinstance(send, SendLeaderAndIsr)]
    assert told == [1, 2]


async def test_what_a_broker_refused_is_told_again_though_others_write_meanwhile(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No look of the tick's would find it: whoever gave it up would leave it out of sync."""
    monkeypatch.setattr(controller_module, "TICK_S", 0)
    await term.create("orders", (1, 2))
    writes = 0

    def somebody_writes() -> None:
        nonlocal writes
        writes += 1
        term.isr_by("orders-0", (1, 2))
        if writes < 2 * MAX_ATTEMPTS:
            term.server.before_writes.append(somebody_writes)

    term.server.before_writes.append(somebody_writes)
    term.channels.refused(Retry(0, LeaderAndIsrRejected(2, {tp("orders-0"): 0})))
    await settled(2000)

    assert writes == 2 * MAX_ATTEMPTS
    assert term.state("orders-0") == (1, 1, (1, 2))


async def test_somebody_elses_topic_of_that_name_is_taken_in_and_the_caller_told(term: Term) -> None:
    """A broker made it by itself at the same moment (auto-creation)."""
    found = b'{"partitions":{"0":[3]},"version":3}'
    term.server.before_writes.append(lambda: term.server.put(paths.topic("orders"), found))

    creation = await term.create("orders", (1, 2))

    assert creation.failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert term.state("orders-0") == (3, 0, (3,))


async def test_a_part_that_was_written_is_followed_up_when_another_was_refused(term: Term) -> None:
    """It is not decided again with the rest: its leaders would wait for the next look at everything."""
    there = b'{"partitions":{"0":[3]},"version":3}'
    term.server.before_writes += [lambda: None, lambda: term.server.put(paths.topic("second"), there)]

    results = await term.controller.submit(CreateTopics((new_topic("first", (1,)), new_topic("second", (2,)))))

    assert results["first"].failure is None
    assert results["second"].failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert term.state("first-0") == (1, 0, (1,))


async def test_moves_of_one_topic_begin_when_those_of_another_were_refused(term: Term) -> None:
    """The same for moves, whose second decision finds the first topic on its way already."""
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


async def test_a_deletion_is_told_to_brokers_although_the_removal_of_another_is_not_known_to_be_done(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stand in one decision; the next one finds the deletion begun, and would never ask brokers for it."""
    await term.create("first", (1,))
    await term.create("second", (2,))
    await term.controller._apply_committed([DeletionStarted("first", {}), DeletionQueued(("second",), Origin.OBSERVED)])
    monkeypatch.setattr(removal_module, "MAX_TRIES", 1)
    term.server.faults.append(Fault.NOT_DONE)

    await term.controller.submit(AdvanceDeletions())

    assert list(term.cluster.topics) == ["second"]
    assert [send.partitions for send in term.channels.deletions()] == [names("second-0")]


async def test_what_follows_is_put_off_when_it_is_refused_and_the_reply_is_not(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller's topics are made; one of them has a state that nobody can read, and the others get their leaders."""
    term.server.before_writes += [
        lambda: None,
        lambda: None,
        lambda: term.server.put(paths.partition_state("broken", 0), b"garbage"),
    ]
    results = await term.controller.submit(CreateTopics((new_topic("broken", (1,)), new_topic("sound", (1,)))))

    assert [result.failure for result in results.values()] == [None, None]
    assert term.state("sound-0") == (1, 0, (1,))
    assert [record.event for record in caplog.records if "deferred" in record.getMessage()] == ["RepairPartitions"]
    assert not term.controller.has_ended


async def test_a_state_that_nobody_can_read_is_not_tried_again_and_again(term: Term) -> None:
    """Nothing new was found: to decide anew would decide the same."""
    await term.create("orders", (1, 2))
    term.server.put(paths.partition_state("orders", 0), b"garbage")
    term.server.lines.clear()

    with pytest.raises(OverloadedError, match="cannot be read"):
        await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert term.server.lines.count("multi") == 1
