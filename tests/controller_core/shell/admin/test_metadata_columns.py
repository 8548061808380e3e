"""Metadata from columns has the bytes of its plain twin, for any cluster, version and caller.

Sources: KafkaApis.handleTopicMetadataRequest, ZkMetadataCache.getPartitionMetadata, KIP-226, KIP-430, KIP-516, KIP-112.
"""

import asyncio
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import Origin, TopicPartition
from controller_core.model.changes import PartitionsAdded, TopicAdded, TopicRemoved
from controller_core.model.columns import pad
from controller_core.model.zookeeper_changes import (
    ControlledShutdownStarted,
    DeletionStarted,
    OfflineReplicasObserved,
    StatesObserved,
)
from controller_core.shell.admin import metadata_encoder
from controller_core.shell.admin.handlers import handlers, no_wait
from controller_core.shell.admin.topic_authorization import authorize_topics
from controller_core.shell.front.handler import RelayInstead
from controller_core.zookeeper_mode.transitions import apply
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_wire import ApiKey, Body, codec
from kafka_wire.encoded_body import EncodedBody
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker
from tests.controller_core.shell.admin.plain_metadata import plain_metadata
from tests.effort import examples
from tests.kafka_node.authorization.samples import Right, context, guard_of

VERSIONS = range(13)
NAMES = ("a", "b", "__consumer_offsets", "long" * 50, "ü")
IDS = {name: UUID(int=7 + place) for place, name in enumerate(NAMES)}
LISTENERS = (["CLIENT", "INTERNAL"], ["INTERNAL"])
KEY = ApiKey.METADATA

brokers = st.dictionaries(st.integers(1, 4), st.sampled_from(LISTENERS), min_size=1, max_size=4)
replicas = st.lists(st.integers(1, 7), min_size=1, max_size=5, unique=True)
partitions = st.fixed_dictionaries(
    {
        "replicas": replicas,
        "leader": st.sampled_from([1, 2, 3, 4, -1, -2, 9]),
        "in_sync": st.integers(0, 5),
        "epoch": st.integers(0, 2**31 - 1),
        "is_new": st.booleans(),
        "failed": st.sets(st.integers(1, 6), max_size=2),
    }
)
topics = st.fixed_dictionaries(
    {
        "numbers": st.permutations(range(4)).flatmap(lambda all_: st.integers(0, 4).map(lambda count: all_[:count])),
        "partitions": st.lists(partitions, min_size=4, max_size=4),
        "added": st.booleans(),
        "has_id": st.booleans(),
        "fate": st.sampled_from(["", "", "", "deleting", "removed"]),
    }
)
clusters = st.tuples(brokers, st.dictionaries(st.sampled_from(NAMES), topics, max_size=5), st.sets(st.integers(1, 6)))
rights = st.none() | st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from([Operation.DESCRIBE, Operation.READ, Operation.ALL, Operation.CREATE]),
            st.just(ResourceType.TOPIC),
            st.sampled_from([*NAMES, "*", "unknown"]),
        ),
        st.just((Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)),
        st.just((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)),
    ),
    max_size=4,
)
requested = st.none() | st.lists(
    st.sampled_from([*({"name": name} for name in (*NAMES, "unknown", "bad/name"))])
    | st.sampled_from([*({"name": None, "topic_id": topic_id} for topic_id in (*IDS.values(), UUID(int=99)))]),
    max_size=4,
)


def cluster_of(drawn: Any) -> FakeActive:
    """Build a cluster from drawn values."""
    registered, topics_, leaving = drawn
    active = active_with(broker(1))
    active.brokers_are(
        *(broker(broker_id, "r" if broker_id % 2 else None, names) for broker_id, names in registered.items())
    )
    for name, topic in topics_.items():
        _add(active, name, topic)
    for broker_id in leaving & registered.keys():
        apply(active.cluster, ControlledShutdownStarted(broker_id))
    return active


def _add(active: FakeActive, name: str, topic: Any) -> None:
    numbers, drawn = np.array(topic["numbers"], np.int32), topic["partitions"][: len(topic["numbers"])]
    lists = pad([state["replicas"] for state in drawn]) if drawn else np.zeros((0, 1), np.int32)
    cut = len(numbers) // 2 if topic["added"] else len(numbers)
    topic_id = IDS[name] if topic["has_id"] else None
    apply(active.cluster, TopicAdded(name, topic_id, numbers[:cut], lists[:cut], Origin.OBSERVED))
    if cut < len(numbers):
        apply(active.cluster, PartitionsAdded(name, numbers[cut:], lists[cut:], Origin.OBSERVED))
    for row, state in zip(active.cluster.topics[name].rows.tolist(), drawn, strict=True):
        partition = TopicPartition(name, int(active.cluster.columns.partition[row]))
        for failed in state["failed"] & set(state["replicas"]):
            apply(active.cluster, OfflineReplicasObserved(failed, (partition,), ()))
        if not state["is_new"]:
            _give_state(active, row, state)
    if topic["fate"] == "deleting":
        apply(active.cluster, DeletionStarted(name, {}))
    elif topic["fate"] == "removed":
        apply(active.cluster, TopicRemoved(name, Origin.OBSERVED))


def _give_state(active: FakeActive, row: int, drawn: Any) -> None:
    def one(number: int) -> Any:
        return np.array([number], np.int32)

    isr = pad([drawn["replicas"][: drawn["in_sync"]]])
    apply(
        active.cluster,
        StatesObserved(
            one(row), one(drawn["leader"]), one(drawn["epoch"]), isr, one(0), one(5), np.zeros(1, dtype=np.bool_)
        ),
    )


def request(version: int, topics_: list[Body] | None, flags: tuple[bool, bool, bool]) -> Body | None:
    """Return a decoded request; None if the version cannot express it."""
    body: Body = {"topics": topics_ if topics_ is not None or version else []}
    if version >= 4:
        body["allow_auto_topic_creation"] = flags[0]
    if version >= 8:
        body["include_topic_authorized_operations"] = flags[1]
    if 8 <= version <= 10:
        body["include_cluster_authorized_operations"] = flags[2]
    try:
        return codec.decode("MetadataRequest", version, codec.encode("MetadataRequest", version, body))
    except codec.CodecError:
        return None


async def answer_bytes(active: FakeActive, version: int, body: Body, granted: list[Right] | None) -> bytes | str:
    """Return the encoded answer of the product."""
    table = handlers(lambda: active)
    if granted is not None:
        table = authorize_topics(table, guard_of(*granted), lambda: active.cluster, no_wait)
    try:
        answer = await table[KEY](context(version), body)
    except RelayInstead:
        return "relayed"
    if isinstance(answer, EncodedBody):
        return b"".join(answer.pieces)
    return codec.encode("MetadataResponse", version, answer)


def twin_bytes(active: FakeActive, version: int, body: Body, granted: list[Right] | None) -> bytes | str:
    """Return the encoded answer of the plain twin."""
    allows = None if granted is None else guard_of(*granted).asking(context(version))
    try:
        return codec.encode("MetadataResponse", version, plain_metadata(active, context(version), body, allows))
    except RelayInstead:
        return "relayed"


@pytest.mark.parametrize("version", VERSIONS)
@examples(20)
@given(
    clusters, requested, st.tuples(st.booleans(), st.booleans(), st.booleans()), rights, st.sampled_from([1, 3, 2_048])
)
def test_columns_have_the_bytes_of_the_plain_twin(
    version: int,
    drawn: Any,
    topics_: list[Body] | None,
    flags: tuple[bool, bool, bool],
    granted: list[Right] | None,
    piece: int,
) -> None:
    """Offline and failed replicas, leaders unknown or without the listener, deletions, internal topics, ids, rights."""
    body = request(version, topics_, flags)
    if body is None:
        return
    active = cluster_of(drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_encoder, "PIECE_PARTITIONS", piece)
        actual = asyncio.run(answer_bytes(active, version, body, granted))
    assert actual == twin_bytes(active, version, body, granted)
