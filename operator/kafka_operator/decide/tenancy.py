"""What a namespace may do with a Cluster of another namespace: which topics it may name, and how many it may have.

    own namespace          everything
    first rule that names  topicNames, maxTopics, maxPartitions of `spec.allowedNamespaces`
    no rule                nothing

Quotas limit what is added: what a namespace has already is counted first and is never taken away, then what its Topics want beside it,
the oldest first, so that every process comes to the same answer. Leaves out who may write Topics at all: that is Kubernetes' RBAC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kafka_operator.decide.ownership import by_seniority
from kafka_operator.names import Key
from kafka_operator.resources.allowed import AllowedNamespaces
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.throttle import ThrottleSpec
from kafka_operator.resources.topic import Topic

NOT_ALLOWED, NAME_NOT_ALLOWED, QUOTA_EXCEEDED = "NotAllowed", "NameNotAllowed", "QuotaExceeded"

INTERNAL = "__"
"""How Kafka's own topics begin (__consumer_offsets): another namespace has them only by a pattern that begins so, too."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Cluster does not do what a resource of another namespace wants: reason and words of its Ready condition."""

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
        f"Cluster {cluster.ref} lets namespace {namespace} have topics {allowed} "
        f"(spec.allowedNamespaces[{index}].topicNames); {topic} is none of them."
    )
    return Refusal(NAME_NOT_ALLOWED, message)


def refusal_of_topics(cluster: Cluster, namespace: str, topics: Iterable[str]) -> Refusal | None:
    """Return why a namespace may not name one of these topics; without topics, why it may not use the Cluster at all."""
    if namespace != cluster.key.namespace and _rule_for(cluster, namespace) is None:
        return _not_allowed(cluster, namespace)
    refusals = (refusal_of_topic(cluster, namespace, topic) for topic in topics)
    return next((refusal for refusal in refusals if refusal is not None), None)


def serves(cluster: Cluster, namespace: str) -> bool:
    """Tell whether a namespace may refer to a Cluster: it is the Cluster's own, or a rule names it."""
    return namespace == cluster.key.namespace or _rule_for(cluster, namespace) is not None


def refusal_of_whole_cluster(cluster: Cluster, namespace: str) -> Refusal | None:
    """Return why a namespace may not touch all topics of a Cluster at once; None when it is the Cluster's own."""
    if namespace == cluster.key.namespace:
        return None
    if _rule_for(cluster, namespace) is None:
        return _not_allowed(cluster, namespace)
    message = (
        f"What concerns all topics of Cluster {cluster.ref} is for namespace {cluster.key.namespace} alone; "
        f"namespace {namespace} may name topics of its own."
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


def quota_refusals(cluster: Cluster, topics: Iterable[Topic]) -> dict[Key, Refusal]:
    """Return those of a Cluster's Topics for which their namespaces have no room left."""
    by_namespace: dict[str, list[Topic]] = {}
    for topic in topics:
        if topic.key.namespace != cluster.key.namespace and not topic.observes:
            by_namespace.setdefault(topic.key.namespace, []).append(topic)
    refusals: dict[Key, Refusal] = {}
    for namespace, declared in by_namespace.items():
        found = _rule_for(cluster, namespace)
        if found is not None and (found[1].max_topics is not None or found[1].max_partitions is not None):
            refusals |= _without_room(cluster, *found, declared)
    return refusals


def _without_room(cluster: Cluster, index: int, rule: AllowedNamespaces, declared: list[Topic]) -> dict[Key, Refusal]:
    """Give what room there is to the oldest first; a topic that finds none leaves it to younger ones that are smaller."""
    taken = [partitions for topic in declared if (partitions := _partitions(topic))]
    topics, partitions = len(taken), sum(taken)
    refusals: dict[Key, Refusal] = {}
    for topic in by_seniority(item for item in declared if _may_ask(cluster, item)):
        present = _partitions(topic)
        more_topics, more_partitions = int(present == 0), max(0, topic.partitions - present)
        if not more_partitions:
            continue
        where = f"namespace {topic.key.namespace} on Cluster {cluster.ref}", f"spec.allowedNamespaces[{index}]"
        if more_topics and rule.max_topics is not None and topics + more_topics > rule.max_topics:
            words = f"There is room for {rule.max_topics} topics of {where[0]} ({where[1]}.maxTopics), and it is taken."
        elif rule.max_partitions is not None and partitions + more_partitions > rule.max_partitions:
            words = (
                f"There is room for {rule.max_partitions} partitions of {where[0]} ({where[1]}.maxPartitions): "
                f"{partitions} are taken, {more_partitions} more are wanted."
            )
        else:
            topics, partitions = topics + more_topics, partitions + more_partitions
            continue
        refusals[topic.key] = Refusal(QUOTA_EXCEEDED, f"{words} Older Topics come first.")
    return refusals


def _may_ask(cluster: Cluster, topic: Topic) -> bool:
    """Tell whether a Topic wants room that it could have: one that goes, or whose name is refused, keeps nobody else from it."""
    return topic.metadata.deleted is None and refusal_of_topic(cluster, topic.key.namespace, topic.name) is None


def _partitions(topic: Topic) -> int:
    """Return the partitions that a Topic has in Kafka, as far as it is known to hold them."""
    return (topic.status.partitions or 0) if topic.metadata.held else 0


def _rule_for(cluster: Cluster, namespace: str) -> tuple[int, AllowedNamespaces] | None:
    for index, rule in enumerate(cluster.allowed_namespaces):
        if any(fnmatchcase(namespace, pattern) for pattern in rule.namespaces):
            return index, rule
    return None


def _matches(topic: str, pattern: str) -> bool:
    return fnmatchcase(topic, pattern) and (pattern.startswith(INTERNAL) or not topic.startswith(INTERNAL))


def _not_allowed(cluster: Cluster, namespace: str) -> Refusal:
    message = (
        f"Cluster {cluster.ref} does not serve namespace {namespace}: none of its spec.allowedNamespaces names it."
    )
    return Refusal(NOT_ALLOWED, message)
