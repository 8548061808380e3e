"""Size limits of requests per API: of the frame, checked after its first 8 bytes, and of the decoded body.

A Python object is many times larger than its encoding, and decoding blocks the event loop. The limits ensure that no request blocks the
loop for more than 50 ms or takes more than 8 times its bytes: each API has a limit in bytes, arrays are charged to a budget before they
are built (kafka_wire.source_decoder), and APIs with large legitimate requests are decoded and answered in slices (kafka_wire.slices).

Where the limits come from (Kafka 3.9 clients and brokers):

- AlterPartition: a broker sends all its pending ISR changes in one request (DefaultAlterPartitionManager). 200,000 partitions with 3
  members each take 54 bytes a partition in version 3: 10.8 MB.
- AlterPartitionReassignments, ElectLeaders, ListPartitionReassignments: the tools send a whole plan in one request. 200,000
  partitions take 18 bytes each, and a topic's name at most 249 bytes: 3.6 MB with 2,000 topics, 13 MB with a topic for each.
- Metadata: `kafka-topics --describe` requests every topic by name. 200,000 names of 40 bytes take 8.4 MB; with ids (version 10 and later)
  11.6 MB. DescribeTopicPartitions, which is answered in pages, may contain 12,000 topics.
- CreateTopics: MirrorMaker 2 creates all new topics of a cluster in one request, each with some 30 configs: 1,000 topics take 1.5 MB.
  KRaft accepts at most 10,000 new partitions per request (ReplicationControlManager); this controller accepts 20,000 topics.
- All others: 10,000 resources or ACLs of 100 bytes each take 1 MB. ControlledShutdown, AllocateProducerIds and ApiVersions have no
  arrays.

Relayed requests such as Produce have Kafka's limit (socket.request.max.bytes). The limits are enforced by `front` and
`kafka_wire.net.assembler`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_wire import ApiKey, Body, frames, schema
from kafka_wire.net.sasl_server import MAX_RECEIVE_BYTES

MIB = 1024 * 1024

SMALL_BYTES = 64 * 1024
"""A request without arrays, or one that will be refused: it is still read, so that the response is complete."""
USUAL_BYTES = 2 * MIB
LARGE_BYTES = 16 * MIB

OWN_UNITS = 100_000
"""Decoding budget of a request that the controller answers: 17 ms and 3 MB at most (measured over all APIs)."""

AUTHORIZATION_UNITS = 40_000
"""Decoding budget of a relayed request that is decoded for the authorizer: 7 ms. Relayed requests can be answered by any node and
contain few groups, topics or transactions."""
ANSWERED_UNITS = {ApiKey.ALTER_REPLICA_LOG_DIRS: 40_000}
"""Budgets instead of OWN_UNITS where a response element is larger than its request element: 25 ms."""

TOPIC_WEIGHT = 10
PARTITIONS_PER_ELEMENT = 4
"""Creation takes 0.2 ms per topic and 5 µs per partition; elements of other slices take 30 µs at most."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Slicing of an API's requests by their main array."""

    paths: tuple[tuple[str, ...], ...]
    """Possible paths of the main array; the first one that exists in the version is used."""
    response: str
    """The array of the response with an element for each element of the request."""
    max_elements: int
    unique: str = ""
    """Key that must be unique: two elements with the same value are both invalid."""
    is_from_brokers: bool = False
    """Whether brokers send it; slices of brokers' and of clients' requests are processed independently."""
    weigh: Callable[[Any], int] | None = None
    """Returns the number of slice elements that an element counts as, where this depends on its content."""


def weigh_topic(topic: Body) -> int:
    """Weigh a topic of CreateTopics: placement and partition states take time proportional to its partitions.

    >>> weigh_topic({"num_partitions": 100, "assignments": []}), weigh_topic({"num_partitions": -1, "assignments": []})
    (35, 10)
    """
    partitions: int = max(topic["num_partitions"], len(topic["assignments"]), 0)
    return TOPIC_WEIGHT + partitions // PARTITIONS_PER_ELEMENT


def weigh_partitions(topic: Body) -> int:
    """Weigh a topic of CreatePartitions."""
    count: int = max(topic["count"], 0)
    return TOPIC_WEIGHT + count // PARTITIONS_PER_ELEMENT


SLICED: Mapping[ApiKey, Sliced] = {
    ApiKey.METADATA: Sliced((("topics",),), "topics", 400_000),
    ApiKey.CREATE_TOPICS: Sliced((("topics",),), "topics", 20_000, unique="name", weigh=weigh_topic),
    ApiKey.DELETE_TOPICS: Sliced((("topics",), ("topic_names",)), "responses", 20_000, unique="name"),
    ApiKey.CREATE_PARTITIONS: Sliced((("topics",),), "results", 20_000, unique="name", weigh=weigh_partitions),
    ApiKey.ELECT_LEADERS: Sliced((("topic_partitions", "partitions"),), "replica_election_results", 400_000),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Sliced((("topics", "partitions"),), "responses", 400_000),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Sliced((("topics", "partition_indexes"),), "topics", 400_000),
    ApiKey.ALTER_PARTITION: Sliced((("topics", "partitions"),), "topics", 400_000, is_from_brokers=True),
    ApiKey.DESCRIBE_PRODUCERS: Sliced((("topics", "partition_indexes"),), "topics", 20_000),
    ApiKey.CREATE_ACLS: Sliced((("creations",),), "results", 20_000),
    ApiKey.DELETE_ACLS: Sliced((("filters",),), "filter_results", 20_000),
}
"""400,000 partitions or names: twice the largest cluster that the controller is built for."""

_LARGE = frozenset(key for key, sliced in SLICED.items() if sliced.max_elements > 20_000) | {ApiKey.ENVELOPE}
_SMALL = frozenset({ApiKey.API_VERSIONS, ApiKey.CONTROLLED_SHUTDOWN, ApiKey.ALLOCATE_PRODUCER_IDS})
_AUTHENTICATION = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


def own_bytes(key: ApiKey) -> int:
    """Return the largest frame of a request that the controller answers.

    >>> own_bytes(ApiKey.CREATE_TOPICS), own_bytes(ApiKey.CONTROLLED_SHUTDOWN)
    (2097152, 65536)
    """
    if key in _SMALL:
        return SMALL_BYTES
    return LARGE_BYTES if key in _LARGE else USUAL_BYTES


def own_units(key: ApiKey) -> int:
    """Return the decoding budget of a request that the controller answers in one piece."""
    return ANSWERED_UNITS.get(key, OWN_UNITS)


def relayed_bytes(key: int) -> int:
    """Return the largest frame of a relayed request."""
    return MAX_RECEIVE_BYTES if key in _AUTHENTICATION else frames.MAX_FRAME_BYTES


def slice_path(key: ApiKey, version: int) -> tuple[str, ...]:
    """Return the path of the main array in a sliced request."""
    fields = schema.definition(key.message + "Request", version).fields
    present = {field.key for field in fields if version in field.versions}
    return next(path for path in SLICED[key].paths if path[0] in present)
