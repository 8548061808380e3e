"""Rights of a namespace on a Cluster of another namespace: allowed topics and throttles.

    own namespace          everything
    first rule that names  topicNames, minBytesPerSecond, maxBytesPerSecond of `spec.allowedNamespaces`
    no rule                nothing

Quotas are in `quota`. Who may write Topics at all is up to Kubernetes' RBAC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kafka_operator.resources.allowed import AllowedNamespaces
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.throttle import ThrottleSpec

NOT_ALLOWED, NAME_NOT_ALLOWED = "NotAllowed", "NameNotAllowed"

INTERNAL = "__"
"""Prefix of Kafka's internal topics (__consumer_offsets): another namespace may name them only by a pattern with this prefix."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Cluster does not do what a resource of another namespace wants: reason and message of its Ready condition."""

    reason: str
    message: str


def refusal_of_topic(cluster: Cluster, namespace: str, topic: str) -> Refusal | None:
    """Return why a namespace may not name a topic of a Cluster; None when it may."""
    if namespace == cluster.key.namespace:
        return None
    found = _rule_for(cluster, namespace)
    if found is None:
        return _not_allowed(cluster, namespace)
    index, rule = found
    patterns = [pattern.replace("${namespace}", namespace) for pattern in rule.topic_names or ("*",)]
    if any(_matches(topic, pattern) for pattern in patterns):
        return None
    allowed = ", ".join(patterns) if rule.topic_names else f"that do not begin with {INTERNAL}"
    message = (
        f"Cluster {cluster.ref} allows namespace {namespace} topics {allowed} "
        f"(spec.allowedNamespaces[{index}].topicNames); {topic} is not one of them."
    )
    return Refusal(NAME_NOT_ALLOWED, message)


def refusal_of_topics(cluster: Cluster, namespace: str, topics: Iterable[str]) -> Refusal | None:
    """Return why a namespace may not name one of these topics; without topics, why it may not use the Cluster at all."""
    if namespace != cluster.key.namespace and _rule_for(cluster, namespace) is None:
        return _not_allowed(cluster, namespace)
    refusals = (refusal_of_topic(cluster, namespace, topic) for topic in topics)
    return next((refusal for refusal in refusals if refusal is not None), None)


def serves(cluster: Cluster, namespace: str) -> bool:
    """Return whether a namespace may refer to a Cluster: the Cluster's own, or one matched by a rule."""
    return namespace == cluster.key.namespace or _rule_for(cluster, namespace) is not None


def refusal_of_whole_cluster(cluster: Cluster, namespace: str) -> Refusal | None:
    """Return why a namespace may not touch all topics of a Cluster at once; None when it is the Cluster's own."""
    if namespace == cluster.key.namespace:
        return None
    if _rule_for(cluster, namespace) is None:
        return _not_allowed(cluster, namespace)
    message = (
        f"Operations on all topics of Cluster {cluster.ref} are only allowed in namespace {cluster.key.namespace}; "
        f"namespace {namespace} may select its own topics."
    )
    return Refusal(NOT_ALLOWED, message)


def bounded_throttle(cluster: Cluster, namespace: str, throttle: ThrottleSpec | None) -> ThrottleSpec | None:
    """Return the throttle of a namespace's Reassignment, moved into the bounds of the rule that names the namespace.

    Without a throttle the upper bound is one, where there is an upper bound.
    """
    found = None if namespace == cluster.key.namespace else _rule_for(cluster, namespace)
    if found is None:
        return throttle
    least, most = found[1].min_bytes_per_second, found[1].max_bytes_per_second
    if throttle is None:
        return None if most is None else ThrottleSpec(most, most)

    def bounded(rate: int) -> int:
        return max(rate, least) if most is None else min(max(rate, least), most)

    return ThrottleSpec(bounded(throttle.min_bytes_per_second), bounded(throttle.max_bytes_per_second))


def quota_of(cluster: Cluster, namespace: str) -> tuple[int, AllowedNamespaces] | None:
    """Return the rule that limits how many topics or partitions a namespace may have, and its place; None for no limit."""
    found = None if namespace == cluster.key.namespace else _rule_for(cluster, namespace)
    return found if found is not None and (found[1].max_topics, found[1].max_partitions) != (None, None) else None


def _rule_for(cluster: Cluster, namespace: str) -> tuple[int, AllowedNamespaces] | None:
    for index, rule in enumerate(cluster.allowed_namespaces):
        if any(fnmatchcase(namespace, pattern) for pattern in rule.namespaces):
            return index, rule
    return None


def _matches(topic: str, pattern: str) -> bool:
    return fnmatchcase(topic, pattern) and (pattern.startswith(INTERNAL) or not topic.startswith(INTERNAL))


def _not_allowed(cluster: Cluster, namespace: str) -> Refusal:
    message = f"Cluster {cluster.ref} does not serve namespace {namespace}: spec.allowedNamespaces does not contain it."
    return Refusal(NOT_ALLOWED, message)
