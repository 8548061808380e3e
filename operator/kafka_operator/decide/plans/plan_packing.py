"""Storage format of large plans in ConfigMaps: split into parts, gzipped, in Kafka's JSON format.

An object of Kubernetes holds 1 MiB, and a plan of a hundred thousand partitions is 8 MiB twice. Each part has `plan.json.gz` and
`base.json.gz`, which kafka-reassign-partitions.sh accepts once it is unpacked.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_operator.decide.plans.plan_document import (
    Document,
    DocumentError,
    digest_of,
    join_documents,
    unpacked,
    write_document,
)
from kafka_operator.resources.reassignment import Assignment
from reconciler.resources.metadata import RawObject

INLINE_PARTITIONS = 500
"""Plans up to here are shown in the status itself: some 80 kB with their base, and about what a person still reads."""

MAX_PART_BYTES = 700_000
"""Of one part, packed: 930 kB in base64, within the 1 MiB of an object with room for its metadata."""

PART_PARTITIONS = 50_000
"""Partitions of a part before it is packed; real plans of that size take a third of a part. One that does not fit is halved."""

COMPRESSION = 6
PLAN_KEY, BASE_KEY = "plan.json.gz", "base.json.gz"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A plan and the replicas that its partitions had before, in the same order: that in which they are handed over.

    `cluster_id` is the cluster that the plan was made for, if it said so.
    """

    plan: tuple[Assignment, ...]
    base: tuple[Assignment, ...]
    cluster_id: str | None = None

    @property
    def digest(self) -> str:
        """Return the digest of plan and base together."""
        return digest_of(self.plan, base=self.base, cluster_id=self.cluster_id)


def packed(recorded: Recorded) -> Iterator[dict[str, str]]:
    """Yield the `binaryData` of each part of plan and base, in order; the same plan gives the same bytes."""
    yield from _parts({PLAN_KEY: recorded.plan, BASE_KEY: recorded.base}, recorded.cluster_id)


def packed_document(document: Document) -> Iterator[dict[str, str]]:
    """Yield the `binaryData` of each part of a plan without base, as in `spec.planFrom`."""
    yield from _parts({PLAN_KEY: document.plan}, document.cluster_id)


def unpack(raws: Sequence[RawObject]) -> Recorded:
    """Read parts back, in their order; DocumentError when one of them was changed beyond reading."""
    document = _joined(raws, PLAN_KEY)
    return Recorded(document.plan, _joined(raws, BASE_KEY).plan, document.cluster_id)


def _parts(whole: Mapping[str, Sequence[Assignment]], cluster_id: str | None) -> Iterator[dict[str, str]]:
    length = max(map(len, whole.values()))
    for start in range(0, length, PART_PARTITIONS):
        yield from _packed({key: items[start : start + PART_PARTITIONS] for key, items in whole.items()}, cluster_id)


def _packed(part: Mapping[str, Sequence[Assignment]], cluster_id: str | None) -> Iterator[dict[str, str]]:
    data = {key: _gzipped(items, cluster_id) for key, items in part.items()}
    length = max(map(len, part.values()))
    if sum(map(len, data.values())) > MAX_PART_BYTES and length > 1:
        half = length // 2
        yield from _packed({key: items[:half] for key, items in part.items()}, cluster_id)
        yield from _packed({key: items[half:] for key, items in part.items()}, cluster_id)
        return
    yield {key: base64.b64encode(packed).decode() for key, packed in data.items()}


def _gzipped(assignments: Sequence[Assignment], cluster_id: str | None) -> bytes:
    return gzip.compress(write_document(assignments, cluster_id), COMPRESSION, mtime=0)


def _joined(raws: Sequence[RawObject], key: str) -> Document:
    named = []
    for raw in raws:
        name = f"{key} of ConfigMap {raw['metadata']['name']}"
        text = (raw.get("binaryData") or {}).get(key)
        if text is None:
            raise DocumentError(f"{name} is gone.")
        named.append((name, unpacked(name, base64.b64decode(text))))
    return join_documents(named, with_log_dirs=True)
