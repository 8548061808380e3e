"""A plan is checked as a whole: a reason for each problem, and nothing moves."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.plans.plan import PlanProblem, check_plan, exact_plan
from kafka_operator.resources.reassignment import Assignment, Partition
from reconciler.names import Key
from tests.kafka_operator.makers import assignments, kafka_topic, moving, raw_plan, reassignment

TOPICS = {"orders": kafka_topic(partitions=3)}
OTHER = Key(kinds.REASSIGNMENT, "shop", "other")


def check(plan: tuple[Assignment, ...], **others: Any) -> PlanProblem | None:
    """Check a plan on brokers 1 to 4, where nothing moves by default."""
    given: dict[str, Any] = {"topics": TOPICS, "broker_ids": (1, 2, 3, 4), "moves": {}, "rivals": {}} | others
    return check_plan(plan, **given)


def test_a_valid_plan_has_no_problem() -> None:
    """Topic, partitions and brokers are there and nothing moves."""
    assert check(assignments(p0=(2, 3, 4), p1=(4, 3, 2))) is None


@pytest.mark.parametrize(
    ("plan", "others", "reason", "message"),
    [
        (assignments("nope", p0=(1, 2)), {}, "UnknownTopic", "nope"),
        (assignments(p7=(1, 2)), {}, "UnknownPartition", "orders-7"),
        (assignments(p0=(1, 9)), {}, "UnknownBroker", "Brokers are not live: 9. Live brokers: 1, 2, 3, 4."),
        (assignments(p0=(1, 2, 2)), {}, "DuplicateReplica", "orders-0 [1, 2, 2]"),
        ((*assignments(p0=(1, 2)), *assignments(p0=(2, 3))), {}, "DuplicatePartition", "orders-0"),
        (assignments(p0=(2, 3)), {"moves": moving("orders", 0, (1, 2), (3, 4))}, "Overlap", "orders-0"),
        (assignments(p0=(2, 3)), {"rivals": {Partition("orders", 0): OTHER}}, "Overlap", "Reassignment other"),
    ],
)
def test_each_problem_has_its_own_reason(
    plan: tuple[Assignment, ...], others: dict[str, Any], reason: str, message: str
) -> None:
    """Unknown topic, partition or broker, a repeated replica, an overlap: a reason each."""
    problem = check(plan, **others)

    assert problem is not None
    assert reason == problem.reason
    assert message in problem.message


def test_one_bad_partition_spoils_the_whole_plan() -> None:
    """All or nothing."""
    assert check(assignments(p0=(2, 3, 4), p1=(2, 3, 99))) is not None


def test_a_long_list_is_cut() -> None:
    """A plan may have thousands of partitions, a message has not."""
    problem = check(tuple(Assignment(Partition("orders", index), (1,)) for index in range(3, 100)))

    assert problem is not None
    assert problem.message.endswith("and 87 more.")


def test_the_exact_plan_is_accepted_unchanged() -> None:
    """Byte for byte, in its order."""
    written = reassignment(plan=raw_plan(p1=[3, 2], p0=[2, 3]))

    assert assignments(p1=(3, 2), p0=(2, 3)) == exact_plan(written, TOPICS)


def test_topics_and_brokers_become_a_plan() -> None:
    """The compact form: every partition of the topic, on these brokers alone."""
    compact = reassignment(topics=[{"name": "orders", "brokers": [2, 3, 4]}])

    plan = exact_plan(compact, TOPICS)

    assert not isinstance(plan, PlanProblem)
    assert {Partition("orders", index) for index in range(3)} == {item.partition for item in plan}
    assert all({2, 3, 4} == set(item.replicas) for item in plan)


def test_the_compact_form_has_reasons_too() -> None:
    """An unknown topic, and brokers that are too few for the copies."""
    unknown = exact_plan(reassignment(topics=[{"name": "nope", "brokers": [1]}]), TOPICS)
    few = exact_plan(reassignment(topics=[{"name": "orders", "brokers": [1, 2]}]), TOPICS)

    assert isinstance(unknown, PlanProblem)
    assert unknown.reason == "UnknownTopic"
    assert isinstance(few, PlanProblem)
    assert few.reason == "NotEnoughBrokers"
