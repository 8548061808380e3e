"""Controller mutation quotas: precedence, token bucket, and accounting of a request (KIP-599)."""

import math
from uuid import UUID

import pytest

from controller_core.model import events
from controller_core.model.quota import DEFAULT, MutationAllowance, QuotaEntity
from controller_core.rules.mutation_quota import (
    EXCEEDED,
    MAX_THROTTLE_MS,
    MutationLimit,
    TokenBucket,
    find_limit,
    quota_entities,
)
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, cluster_with

USED_UP, LITTLE = MutationAllowance(-0.5, is_strict=True), MutationAllowance(0.5, is_strict=True)


def test_the_most_specific_quota_applies() -> None:
    """DefaultQuotaCallback.quotaMetricTags: users before client ids, names before defaults, pairs before single ones."""
    order = quota_entities("alice", "cli")
    buckets = [("alice", "cli"), ("alice", "cli"), ("alice", ""), ("alice", "cli"), ("alice", "cli"), ("alice", "")]
    assert [key for _, key in order] == [*buckets, ("", "cli"), ("", "cli")]

    for place in range(len(order)):
        rates = {entity: float(rank + 1) for rank, (entity, _) in enumerate(order) if rank >= place}
        assert find_limit("alice", "cli", rates) == MutationLimit(order[place][1], place + 1.0)


def test_a_caller_without_a_quota_is_not_limited() -> None:
    """Quotas of other users and client ids, and an infinite rate."""
    assert find_limit("alice", "cli", {QuotaEntity("bob"): 1.0, QuotaEntity(client_id="other"): 1.0}) is None
    assert find_limit("alice", "cli", {QuotaEntity(DEFAULT): math.inf}) is None
    assert find_limit("alice", "cli", {}) is None


def test_a_bucket_holds_the_tokens_of_eleven_seconds_and_fills_at_its_rate() -> None:
    """TokenBucket with controller.quota.window.num 11 and controller.quota.window.size.seconds 1."""
    bucket = TokenBucket.full(10, now_ms=0)
    assert bucket.tokens == 110
    spent = bucket.spend(150)
    assert spent.tokens == -40
    assert spent.throttle_ms(10) == 4_000
    later = spent.refilled(10, now_ms=1_500)
    assert later.tokens == -25
    assert later.throttle_ms(10) == 2_500
    assert later.refilled(10, now_ms=4_000).throttle_ms(10) == 0
    assert later.refilled(10, now_ms=1_000_000).tokens == 110


def test_a_changed_rate_applies_at_once() -> None:
    """ClientQuotaManager.updateQuotaMetricConfigs: the bucket stays; its bound and its rate change."""
    assert TokenBucket.full(10, now_ms=0).refilled(1, now_ms=0).tokens == 11
    assert TokenBucket(-10, 0).refilled(20, now_ms=1_000).tokens == 10


def test_a_rate_of_zero_never_recovers() -> None:
    """The throttle time is an int32."""
    assert TokenBucket.full(0, now_ms=0).spend(1).throttle_ms(0) == MAX_THROTTLE_MS
    assert TokenBucket(-1e300, 0).throttle_ms(1e-300) == MAX_THROTTLE_MS


def create(driver: Driver, allowance: MutationAllowance, *counts: int, validate_only: bool = False) -> list[object]:
    """Create topics with these numbers of partitions in one request; return the errors."""
    new = tuple(events.NewTopic(f"topic{place}", UUID(int=place + 100), count, 1) for place, count in enumerate(counts))
    results = driver.submit(events.CreateTopics(new, validate_only, allowance=allowance))
    return [None if result.failure is None else result.failure.code for result in results.values()]


def test_a_request_may_use_up_the_quota_and_later_topics_are_refused() -> None:
    """StrictControllerMutationQuota: tokens are checked before they are taken, topic by topic."""
    driver = cluster_with([1])
    assert create(driver, LITTLE, 3, 1) == [None, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert list(driver.cluster.topics) == ["topic0"]


def test_nothing_is_refused_while_tokens_are_left() -> None:
    """A bucket at 0 is not used up."""
    assert create(cluster_with([1]), MutationAllowance(4, is_strict=True), 2, 2, 2) == [None, None, None]


def test_a_validated_request_uses_no_tokens() -> None:
    """ZkAdminManager records mutations after the check of validateOnly."""
    assert create(cluster_with([1]), USED_UP, 3, validate_only=True) == [None]


def test_old_request_versions_are_not_refused() -> None:
    """PermissiveControllerMutationQuota: they have no error code for it."""
    assert create(cluster_with([1]), MutationAllowance(-5, is_strict=False), 3, 1) == [None, None]


def test_a_topic_refused_for_another_reason_uses_no_tokens() -> None:
    """Mutations are recorded after all checks; the error is the topic's own."""
    driver = cluster_with([1], {"topic0": [[1]]})
    assert create(driver, LITTLE, 3, 1, 1) == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        None,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ]


@pytest.mark.parametrize("validate_only", [False, True])
def test_partitions_are_not_added_over_the_quota(validate_only: bool) -> None:
    """ZkAdminManager.createPartitions: as many mutations as partitions are added."""
    driver = cluster_with([1], {"orders": [[1]], "logs": [[1]]})
    new = (events.NewPartitions("orders", 3), events.NewPartitions("logs", 3))

    results = driver.submit(events.CreatePartitions(new, validate_only, allowance=LITTLE))

    assert results == {"orders": None, "logs": None if validate_only else EXCEEDED}
    assert len(driver.cluster.topics["orders"].rows) == (1 if validate_only else 3)
    assert len(driver.cluster.topics["logs"].rows) == 1


def test_topics_are_not_deleted_over_the_quota() -> None:
    """ZkAdminManager.deleteTopics: as many mutations as the topic has partitions; unknown names stay unknown."""
    driver = cluster_with([1], {"orders": [[1], [1]], "logs": [[1]]})

    results = driver.submit(events.DeleteTopics(("orders", "never", "logs"), allowance=LITTLE))

    codes = {name: None if failure is None else failure.code for name, failure in results.items()}
    assert codes == {
        "orders": None,
        "never": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "logs": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
    assert list(driver.cluster.topics) == ["logs"]
