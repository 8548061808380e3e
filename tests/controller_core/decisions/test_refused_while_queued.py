"""Replicas refused by a broker, of a topic queued for deletion: sent again while the topic is in service."""

from tests.controller_core.decisions.driver import cluster_with
from tests.controller_core.decisions.messages import LeaderAndIsr


def test_a_refused_replica_is_sent_again_while_the_deletion_waits_for_its_move() -> None:
    """C9, C10: the move needs the replica in sync, and the deletion needs the move's end."""
    driver = cluster_with([1, 2, 3], {"orders": [[1, 2]]})
    driver.holds_answers = True
    driver.refuse(3)
    driver.reassign({"orders-0": [1, 3]})
    driver.delete("orders")
    driver.forget()
    driver.answer(3)

    assert driver.sent(LeaderAndIsr, 3)
    driver.holds_answers = False
    driver.alter_isr("orders-0", [1, 2, 3])
    driver.settle()

    assert driver.written.topics == {}
    assert driver.written.deletions == []


def test_a_refused_replica_of_a_topic_that_is_being_deleted_is_not_sent_again() -> None:
    """C10: it would be resurrected."""
    driver = cluster_with([1, 2, 3], {"orders": [[1, 2]]})
    driver.holds_answers = True
    driver.refuse(3)
    driver.reassign({"orders-0": [1, 3]})
    driver.reassign({"orders-0": None})
    driver.answer(1)
    driver.delete("orders")
    driver.forget()
    driver.answer(3)

    assert driver.sent(LeaderAndIsr, 3) == []
