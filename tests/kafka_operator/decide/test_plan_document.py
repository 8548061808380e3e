"""Plans as documents: Kafka's own JSON, within limits, and a digest that a person can make as well."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.plans import plan_document
from kafka_operator.decide.plans.plan_document import (
    DocumentError,
    digest_of,
    read_config_maps,
    read_document,
    unpacked,
)
from kafka_operator.decide.plans.plan_packing import MAX_PART_BYTES, Recorded, packed, unpack
from kafka_operator.resources.reassignment import Assignment, Partition
from tests.kafka_operator.makers import assignments
from tests.kafka_operator.plans import document, raw_config_map

PLAN = assignments(p0=(2, 3, 4), p1=(3, 4, 2))


@st.composite
def plans(draw: st.DrawFn) -> tuple[Assignment, ...]:
    """Any plan, each partition once."""
    names = st.text("abcXYZ019._-", min_size=1, max_size=8)
    partitions = draw(st.sets(st.builds(Partition, names, st.integers(0, 10_000)), min_size=1, max_size=30))
    replicas = st.lists(st.integers(0, 2000), min_size=1, max_size=5, unique=True)
    return tuple(Assignment(partition, tuple(draw(replicas))) for partition in partitions)


@pytest.mark.shows("E1")
@given(plans(), st.randoms(use_true_random=False))
def test_a_digest_is_that_of_the_plan_however_it_is_written(plan: tuple[Assignment, ...], rng: random.Random) -> None:
    """Order, white space and log_dirs do not count; the formula is the one in the documentation."""
    shuffled = list(plan)
    rng.shuffle(shuffled)

    read = read_document(document(shuffled).encode())

    assert tuple(shuffled) == read.plan
    assert digest_of(plan) == read.digest
    entries = sorted((item.to_json() for item in plan), key=lambda entry: (entry["topic"], entry["partition"]))
    text = json.dumps({"version": 1, "partitions": entries}, sort_keys=True, separators=(",", ":"))
    assert digest_of(plan) == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@given(plans())
def test_another_order_of_replicas_or_another_base_is_another_digest(plan: tuple[Assignment, ...]) -> None:
    """The first replica leads; and what is approved is a plan from where the partitions are."""
    turned = tuple(Assignment(item.partition, item.replicas[::-1]) for item in plan)
    same = all(len(item.replicas) == 1 for item in plan)

    assert same is (digest_of(plan) == digest_of(turned))
    assert same is (digest_of(plan, base=plan) == digest_of(plan, base=turned))
    assert digest_of(plan) != digest_of(plan, cluster_id="x")


@given(plans(), plans())
def test_plan_and_base_are_kept_and_read_back_as_they_were(
    plan: tuple[Assignment, ...], other: tuple[Assignment, ...]
) -> None:
    """Byte for byte, in their order; the same plan makes the same ConfigMaps."""
    recorded = Recorded(plan, tuple(Assignment(item.partition, other[0].replicas) for item in plan), "cluster")

    parts = list(packed(recorded))

    assert parts == list(packed(recorded))
    raws = [{"metadata": {"name": str(number)}, "binaryData": data} for number, data in enumerate(parts)]
    assert recorded == unpack(raws)


@pytest.mark.slow
def test_a_part_that_does_not_fit_is_halved() -> None:
    """Names that do not compress: every part stays below what an object holds."""
    rng = random.Random(1)
    plan = tuple(
        Assignment(Partition("".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=200)), index), (1, 2, 3))
        for index in range(10_000)
    )

    parts = list(packed(Recorded(plan, plan)))

    assert len(parts) > 1
    assert all(sum(len(base64.b64decode(text)) for text in part.values()) <= MAX_PART_BYTES for part in parts)


def test_config_maps_are_joined_in_their_order() -> None:
    """Text and gzip, each a whole document with a part of the plan."""
    raws = [raw_config_map("b", PLAN[1:], packed=True), raw_config_map("a", PLAN[:1], clusterId="x")]

    read = read_config_maps(raws)

    assert read.plan == (PLAN[1], PLAN[0])
    assert read.cluster_id == "x"


def named(**data: Any) -> list[dict[str, Any]]:
    """One ConfigMap."""
    return [{"metadata": {"name": "plan"}, **data}]


def packed_text(text: bytes) -> str:
    """As binaryData has it."""
    return base64.b64encode(gzip.compress(text)).decode()


ENTRY = {"topic": "orders", "partition": 0, "replicas": [1]}
BAD = [
    (named(), "contains no plan: no key"),
    (named(data={"plan.txt": "{}"}), "contains no plan"),
    (named(data={"plan.json": "{"}), "plan.json of ConfigMap plan is not JSON"),
    (named(data={"plan.json": "[" * 100_000}), "is not JSON"),
    (named(data={"plan.json": "[]"}), 'has no list "partitions"'),
    (named(data={"plan.json": '{"partitions": []}'}), "contains no partition"),
    (named(data={"plan.json": '{"version": 2, "partitions": [1]}'}), '"version" 2'),
    (named(data={"plan.json": '{"clusterId": 5, "partitions": [1]}'}), '"clusterId"'),
    (
        named(data={"plan.json": '{"partitions": [1]}'}),
        '"partitions"[0] in plan.json of ConfigMap plan is not an object',
    ),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"topic": "a b"}]})}), 'in "topic"'),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"partition": True}]})}), 'in "partition"'),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"partition": 2**31}]})}), 'in "partition"'),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"replicas": []}]})}), 'in "replicas"'),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"replicas": ["1"]}]})}), 'in "replicas"'),
    (named(data={"plan.json": json.dumps({"partitions": [ENTRY | {"log_dirs": ["/data"]}]})}), "log_dirs"),
    (named(binaryData={"plan.json.gz": "!"}), "is not base64"),
    (named(binaryData={"plan.json.gz": base64.b64encode(b"plain").decode()}), "is not gzip"),
    (named(binaryData={"plan.json.gz": packed_text(b"{}" * 999)[:40]}), "truncated"),
]


@pytest.mark.shows("F17")
@pytest.mark.parametrize(("raws", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_an_invalid_plan_is_reported_with_its_position(raws: list[dict[str, Any]], message: str) -> None:
    """Garbage, and entries that could be no partition."""
    with pytest.raises(DocumentError) as caught:
        read_config_maps(raws)

    assert message in str(caught.value)


def test_parts_of_two_clusters_are_no_plan() -> None:
    """Copied together by mistake."""
    raws = [raw_config_map("a", PLAN[:1], clusterId="x"), raw_config_map("b", PLAN[1:], clusterId="y")]

    with pytest.raises(DocumentError, match="different clusters: x, y"):
        read_config_maps(raws)


def test_what_unpacks_to_more_than_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of zeros is a megabyte of gzip."""
    monkeypatch.setattr(plan_document, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(DocumentError, match="more than 1000 bytes"):
        unpacked("plan.json.gz", gzip.compress(b"0" * 10_000))
    with pytest.raises(DocumentError, match="larger than 1000 bytes"):
        read_document(b" " * 1001)


def test_more_partitions_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on everything."""
    monkeypatch.setattr(plan_document, "MAX_PARTITIONS", 1)
    with pytest.raises(DocumentError, match="more than 1 partitions"):
        read_document(document(PLAN).encode())


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    """Whatever is there, a plan or words come of it."""
    for read in (read_document, lambda data: unpacked("it", data), lambda data: unpacked("it", zlib.compress(data))):
        with contextlib.suppress(DocumentError):
            read(data)
