"""Names of the operator in Kubernetes: group, kinds, finalizers, annotations.

All names on a user's object have the group's prefix, which shows their owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GROUP = "steward.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

FINALIZER = f"{GROUP}/operator"
"""Finalizer: on a resource from before the first effect on Kafka until the last one is reverted or kept on purpose."""

FRAMEWORK_FINALIZER = f"{GROUP}/framework"
"""Configured in kopf, and never set: kopf removes its configured finalizer from objects for which it has no handler."""

MANAGED_CONFIG = f"{GROUP}/managed-config"
"""Annotation of a Topic: the settings' names that this Topic may have set, comma-separated, written before they are set."""

ORIGIN = f"{GROUP}/origin"
"""Annotation of a Topic: whether its Kafka topic was to be created or was found, written before either has an effect (topic_origin)."""

ADOPT = f"{GROUP}/adopt"
"""Annotation that a user sets on a Topic to have a Kafka topic that differs from it made as declared."""

STARTED = f"{GROUP}/started"
"""Annotation of a resource that runs once: that it has started, written before its first effect; it outlives its status (started)."""

PAUSE = f"{GROUP}/pause-reconciliation"
"""Annotation that a user sets, to "true", on any resource: nothing is done for it as long as it is there."""

CLUSTER_LABEL = f"{GROUP}/cluster"
"""Label that the owner of a StatefulSet sets to a Cluster's name, so that the operator may scale it and replace its pods."""

SPARK_APPLICATION_LABEL = f"{GROUP}/spark-application-uid"
"""Label of all pods of a SparkApplication: its uid, since a name may be longer than a label's value."""

SPARK_ROLE_LABEL = f"{GROUP}/spark-role"
"""Label of a SparkApplication's pods: driver or executor."""

SPARK_ATTEMPT_LABEL = f"{GROUP}/spark-attempt"
"""Label of a SparkApplication's pods: the attempt that they belong to, from 1."""

COMPONENT = "steward-operator"
"""Reporting component of events, and field manager of writes."""


class Kind(StrEnum):
    """The resources that are reconciled."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"
    REASSIGNMENT = "Reassignment"
    ELECTION = "Election"
    SPARK_APPLICATION = "SparkApplication"
    SCHEDULED_SPARK_APPLICATION = "ScheduledSparkApplication"

    @property
    def plural(self) -> str:
        """Return the name in URLs."""
        return f"{self.value.lower()}s"


KAFKA_KINDS = (Kind.CLUSTER, Kind.TOPIC, Kind.REASSIGNMENT, Kind.ELECTION)
"""The kinds that are served always; Clusters first, so that the others find theirs."""

SPARK_KINDS = (Kind.SPARK_APPLICATION, Kind.SCHEDULED_SPARK_APPLICATION)
"""The kinds that are served with --spark."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The name of one resource: the only content of an event that is passed on."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ClusterRef:
    """The Cluster that a resource refers to, in the resource's own namespace where it names no other."""

    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """Return the Cluster's own key."""
        return Key(Kind.CLUSTER, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
