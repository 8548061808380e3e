"""Schema of the documents of `/state` (JSON objects), for their builders and for programs that print them.

Numbers are Kafka's ids, epochs and counts; -1 is Kafka's "none". A listing has at most `MAX_LISTED` elements.
"""

from typing import Generic, Literal, TypedDict, TypeVar

T = TypeVar("T")

MAX_LISTED = 100
"""Maximum length of a list: readable, and quickly encoded while the event loop waits."""


class Listing(TypedDict, Generic[T]):
    """The first elements of a list, and its full length."""

    in_all: int
    listed: list[T]


class BrokerDocument(TypedDict):
    """A registered broker."""

    id: int
    epoch: int
    rack: str | None
    state: Literal["live", "shutting down"]
    endpoints: list[str]
    """LISTENER://HOST:PORT."""
    leads: int
    in_sync: int
    replicas: int
    queued_requests: int


class PartitionCounts(TypedDict):
    """Counts of partitions whose topics are not being deleted."""

    in_service: int
    offline: int
    under_replicated: int
    not_led_by_preferred: int


class ReassignmentDocument(TypedDict):
    """A running reassignment (KIP-455)."""

    partition: str
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    stage: str
    waits_for: list[int]


class DeletionDocument(TypedDict):
    """A topic whose deletion is queued or running."""

    topic: str
    started: bool
    blocked: str | None
    waits_for: dict[str, int]
    """Partitions whose logs a broker has not deleted yet, by broker id."""


class StrayReplicasDocument(TypedDict):
    """Brokers that may hold a log of a partition that is not assigned to them."""

    partition: str
    brokers: list[int]


class RefusedReplicaDocument(TypedDict):
    """A replica that a live broker refuses."""

    partition: str
    broker: int
    error: str


class ClusterDocument(TypedDict):
    """State of an active controller."""

    active: Literal[True]
    cluster_id: str
    controller_id: int
    controller_epoch: int
    waiting_events: int
    brokers: list[BrokerDocument]
    unreachable_brokers: list[int]
    topics: int
    partitions: PartitionCounts
    offline_partitions: list[str]
    reassignments: Listing[ReassignmentDocument]
    deletions: Listing[DeletionDocument]
    stray_replicas: Listing[StrayReplicasDocument]
    refused_replicas: Listing[RefusedReplicaDocument]
    unreadable_topics: list[str]
    """Topics whose znode cannot be decoded."""


class StandbyDocument(TypedDict):
    """State of a controller that is not active."""

    active: Literal[False]
    controller_id: int


class PartitionDocument(TypedDict):
    """A partition's state; `state` is Kafka's name, such as OnlinePartition."""

    partition: int
    state: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    replicas: list[int]


class TopicDocument(TypedDict):
    """State of one topic."""

    topic: str
    topic_id: str | None
    partitions: list[PartitionDocument]
    partitions_in_all: int
