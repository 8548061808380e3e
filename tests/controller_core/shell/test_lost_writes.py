"""Writes with a lost answer, done or not done: their effect happens once.

Sources: protocol notes, Z103; C4.
"""

import pytest

from controller_core.model.events import AllocateProducerIds, ElectLeaders
from controller_core.model.zookeeper_events import BrokersRead
from tests.controller_core.shell.terms import Term, isr_request, names
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import tp


@pytest.mark.shows("C4")
@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_an_isr_change_with_a_lost_answer_is_written_once(term: Term, fault: Fault) -> None:
    """ConnectionLoss, with the write done and not done (protocol notes, Z103). C4: the partition epoch grows by one."""
    await term.create("orders", (1, 2))
    term.server.faults.append(fault)

    answers = await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert answers[tp("orders-0")].partition_epoch == 1
    assert term.state("orders-0") == (1, 0, (1,))


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_topic_creation_with_a_lost_answer_happens_once_and_succeeds(term: Term, fault: Fault) -> None:
    """The client must not get TOPIC_ALREADY_EXISTS for its own topic."""
    term.server.faults.append(fault)

    creation = await term.create("orders", (1, 2))

    assert creation.failure is None
    assert creation.topic_id == term.cluster.topics["orders"].topic_id
    assert term.state("orders-0") == (1, 0, (1, 2))


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE, None], ids=["done", "not done", "refused in part"])
async def test_an_election_of_the_first_attempt_is_answered_as_done(term: Term, fault: Fault | None) -> None:
    """KIP-460: ELECTION_NOT_NEEDED is for a partition that needed none at the time of the request."""
    await term.create("orders", (1, 2), (1, 2))
    await term.controller.submit(BrokersRead((term.broker(2),)))
    await term.controller.submit(BrokersRead((term.broker(1), term.broker(2))))
    for partition in ("orders-0", "orders-1"):
        await term.controller.submit(isr_request(term, partition, (2, 1)))
    if fault is not None:
        term.server.faults.append(fault)
    else:
        term.server.before_writes.append(lambda: term.isr_by("orders-1", (1, 2)))

    results = await term.controller.submit(ElectLeaders(names("orders-0", "orders-1")))

    assert dict.fromkeys(names("orders-0", "orders-1")) == results
    assert term.state("orders-0") == (1, 2, (2, 1))
    assert term.state("orders-1")[0] == 1


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_no_producer_id_is_handed_out_twice(term: Term, fault: Fault) -> None:
    """KIP-730: a block whose write got no answer is lost rather than given to two brokers."""
    event = AllocateProducerIds(1, term.cluster.brokers[1].epoch)
    first = await term.controller.submit(event)
    term.server.faults.append(fault)
    second = await term.controller.submit(event)

    assert first.first == 0
    assert (1000 if fault is Fault.NOT_DONE else 2000) == second.first
