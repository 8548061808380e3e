"""Admission reviews: validation of resources with the brokers, within a deadline and without side effects.

It is independent of the reconcilers and shares no state with them: a standby, or a process of another shard, can answer too, because a
validation has no effect that a Lease must guard. A resource that cannot be validated in time is accepted.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection
from typing import Any

from kafka_operator import kinds
from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic
from kafka_operator.decide.plans.goals import problem_with_goal
from kafka_operator.decide.plans.plan import PlanProblem, check_plan, exact_plan
from kafka_operator.decide.reassignments.move_windows import problem_of_windows
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.decide.tenants.admission import (
    TAKEN,
    Answer,
    Review,
    judge_problem,
    judge_topic,
    judge_windows,
    read_review,
    unchecked,
)
from kafka_operator.decide.tenants.tenancy import refusal_of_topic, refusal_of_whole_cluster
from kafka_operator.decide.topics.topic import desired_actions
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, Connect, ConnectionPool
from kafka_operator.engine.credentials import Credentials
from kafka_operator.engine.reassignment_reads import topics_of
from kafka_operator.engine.topic_reads import query_topics
from kafka_operator.resources.cluster import Cluster, read_cluster
from kafka_operator.resources.cluster_ref import ClusterRef, cluster_key
from kafka_operator.resources.reassignment import Reassignment, read_reassignment
from kafka_operator.resources.topic import Topic, read_topic
from reconciler.decide.conditions import UNKNOWN, ready_of
from reconciler.kube.port import Kube, KubeError, NotFoundError
from reconciler.metrics import Metrics

DEADLINE_S = 4.0
"""Time limit of a check: half of the webhook's timeout, since `kubectl apply` waits for it."""

MAX_CHECKS = 16
"""Concurrent checks; further reviews wait, and those that wait too long are accepted."""

TOO_LATE = unchecked(f"no response within {DEADLINE_S:.0f} s.")

log = logging.getLogger(__name__)


class Admission:
    """Answers AdmissionReviews."""

    def __init__(
        self,
        kube: Kube,
        connect: Connect,
        metrics: Metrics,
        *,
        namespaces: Collection[str],
        clock: Callable[[], float],
        rng: random.Random,
        aws_identity_namespaces: Collection[str] = (),
    ) -> None:
        """`ports` have no Lease guard. Resources outside `namespaces` (empty: all) are accepted unchecked."""
        self._kube = kube
        self._metrics = metrics
        self._namespaces = frozenset(namespaces)
        self._cache = Cache()
        self._connections = ConnectionPool(
            self._cache, Credentials(kube, clock, aws_identity_namespaces), connect, clock, rng
        )
        self._clock = clock
        self._checks = asyncio.Semaphore(MAX_CHECKS)
        self._under_way: set[asyncio.Task[Answer]] = set()

    async def close(self) -> None:
        """Cancel checks in progress, and close the connections."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._connections.close()

    async def review(self, raw: Any) -> dict[str, Any]:
        """Return the response to an AdmissionReview; KeyError, TypeError or ValueError if it is invalid."""
        review = read_review(raw)
        answer = await self._answer(review)
        self._metrics.admission_reviews.labels(review.kind.name, answer.verdict).inc()
        if answer is not TAKEN:
            named = {"resource": f"{review.kind.name} {review.namespace}/{review.raw['metadata']['name']}"}
            log.info("Reviewed resource", extra={**named, "verdict": answer.verdict, "reason": answer.reason})
        return answer.to_json(review.uid)

    async def _answer(self, review: Review) -> Answer:
        if not review.edited or (self._namespaces and review.namespace not in self._namespaces):
            return TAKEN
        # A call to Kafka continues after its review has timed out; until it ends, it counts as a concurrent check.
        task = asyncio.create_task(self._checked(review, self._clock() + DEADLINE_S))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        done, _ = await asyncio.wait({task}, timeout=DEADLINE_S)
        return task.result() if done else TOO_LATE

    async def _checked(self, review: Review, deadline_s: float) -> Answer:
        try:
            async with self._checks:
                return await self._check(review) if self._clock() < deadline_s else TOO_LATE
        except ClusterUnavailableError as error:
            return unchecked(error.unavailable.message)
        except KubeError as error:
            log.info("Failed to read Cluster", extra={"error": str(error)})
            return unchecked("the Cluster could not be read.")

    async def _check(self, review: Review) -> Answer:
        if review.kind == kinds.TOPIC:
            topic = read_topic(review.raw)
            cluster = await self._cluster(topic.cluster)
            return await self._check_topic(topic, cluster) if isinstance(cluster, Cluster) else cluster
        if review.kind == kinds.REASSIGNMENT:
            item = read_reassignment(review.raw)
            answer = judge_windows(problem_of_windows(item.windows), created=review.created)
            if answer is not TAKEN or not review.created:
                return answer
            cluster = await self._cluster(item.cluster)
            return await self._check_reassignment(item, cluster) if isinstance(cluster, Cluster) else cluster
        return TAKEN

    async def _cluster(self, ref: ClusterRef) -> Cluster | Answer:
        """Read a Cluster; a missing one may be part of the same `kubectl apply`."""
        try:
            cluster = read_cluster(await self._kube.get_object(cluster_key(ref)))
        except NotFoundError:
            self._cache.delete(cluster_key(ref))
            await self._connections.drop(ref)
            return unchecked(f"namespace {ref.namespace} has no Cluster {ref.name}.")
        self._cache.store(cluster)
        ready = ready_of(cluster.status.conditions)
        if ready is not None and ready.status == UNKNOWN:  # it was read seconds ago
            return unchecked(ready.message)
        return cluster

    async def _check_topic(self, topic: Topic, cluster: Cluster) -> Answer:
        refusal = refusal_of_topic(cluster, topic.key.namespace, topic.name)
        if refusal is not None:
            return Answer(refusal.reason, refusal.message)
        if topic.metadata.paused:
            return TAKEN

        async def ask(admin: Admin) -> Answer:
            snapshot = await query_topics(admin, [topic])
            if topic.name in snapshot.failures:
                return unchecked(snapshot.failures[topic.name].message)
            observed = snapshot.topics.get(topic.name)
            return judge_topic(topic, observed, await _refusals(admin, topic, observed))

        return await self._connections.use(cluster.ref, ask)

    async def _check_reassignment(self, item: Reassignment, cluster: Cluster) -> Answer:
        whole = item.goal is not None and not item.goal.topics
        names = topics_of(item, None) or ()
        namespace = item.key.namespace
        refusals = [refusal_of_whole_cluster(cluster, namespace)] if whole else []
        refusals += [refusal_of_topic(cluster, namespace, name) for name in names]
        for refusal in refusals:
            if refusal is not None:
                return Answer(refusal.reason, refusal.message)
        if item.plan_from is not None:  # it may be applied after the Reassignment
            return TAKEN

        async def ask(admin: Admin) -> Answer:
            return judge_problem(await _problem(admin, item))

        return await self._connections.use(cluster.ref, ask)


async def _refusals(admin: Admin, topic: Topic, observed: KafkaTopic | None) -> dict[str, Failure]:
    """Validate all changes to the Kafka topic with the brokers (validateOnly); return their rejections."""
    refused: dict[str, Failure] = {}
    for action in desired_actions(topic, observed):
        if isinstance(action, CreateTopic):
            refused.update(await admin.create_topics([action], validate_only=True))
        elif isinstance(action, GrowTopic):
            refused.update(await admin.grow_topics([action], validate_only=True))
        elif isinstance(action, AlterConfig):
            refused.update(await admin.alter_configs([action], validate_only=True))
    return refused


async def _problem(admin: Admin, item: Reassignment) -> PlanProblem | None:
    layout = await admin.describe_layout(topics_of(item, None))
    if item.goal is not None:
        return problem_with_goal(item.goal, layout)
    plan = exact_plan(item, layout.topics)
    if isinstance(plan, PlanProblem):
        return plan
    return check_plan(plan, topics=layout.topics, broker_ids=layout.racks, moves={}, rivals={})
