"""Plan documents: Kafka's reassignment JSON, parsed within limits, and its digest.

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3, 4]}, ...], "clusterId": "..."}

`clusterId` is Steward's and optional; a plan that names another cluster than it is applied to is refused. `log_dirs` may be there
as Kafka's tool writes them, all "any"; other ones are in the plans that the operator stores for the goal balanceLogDirs.

The digest is SHA-256 over the canonical form: the document above with its partitions in order of topic and number, of each partition
`topic`, `partition` and `replicas` alone, keys in alphabetical order, no space between tokens, UTF-8; in jq's words
`jq -cjS '{version, partitions: [.partitions[] | {topic, partition, replicas}] | sort_by(.topic, .partition)}' plan.json | sha256sum`.
A partition of the goal balanceLogDirs has `log_dirs` as well. So it is the same however a file is laid out. A proposal's digest covers the replicas of before as well, under `base`: the same plan
from elsewhere is another thing to approve.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_operator.resources.reassignment import ANY_LOG_DIR, Assignment, Partition
from reconciler.resources.metadata import RawObject

MAX_DOCUMENT_BYTES = 128 * 2**20
"""All documents of a plan, unpacked: 500,000 partitions with long names take half of it."""

MAX_PARTITIONS = 500_000
"""Partitions of a plan: more than the largest known clusters have."""

MAX_REPLICAS = 100
"""Replicas of a partition: as many as the planner takes."""

MAX_ID = 2**31 - 1
"""Broker ids and partition numbers are Kafka's int32."""

TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""org.apache.kafka.common.internals.Topic."""

VERSION = 1
GZIP_WINDOW = 16 + zlib.MAX_WBITS
"""Has zlib expect gzip's header."""


class DocumentError(ValueError):
    """The document is not a plan; the message contains place and reason."""


@dataclass(frozen=True, slots=True)
class Document:
    """A plan in its original order, and the cluster that it was made for, if it names one."""

    plan: tuple[Assignment, ...]
    cluster_id: str | None = None

    @property
    def digest(self) -> str:
        """Return the plan's digest."""
        return digest_of(self.plan, cluster_id=self.cluster_id)


def read_document(data: bytes) -> Document:
    """Read one document; DocumentError when it is none."""
    return join_documents([("the document", data)])


def read_config_maps(raws: Sequence[RawObject]) -> Document:
    """Read the plan that ConfigMaps hold together, each key a document, in order of name; DocumentError when they hold none."""
    named = [item for raw in raws for item in _documents(raw)]
    if not named:
        names = ", ".join(raw["metadata"]["name"] for raw in raws)
        raise DocumentError(
            f"ConfigMap {names} contains no plan: no key in data ends with .json, and no key in binaryData with .json.gz."
        )
    return join_documents(named)


def join_documents(named: Iterable[tuple[str, bytes]], *, with_log_dirs: bool = False) -> Document:
    """Read documents (name, bytes) and join them in their order; DocumentError names the one that is wrong.

    `with_log_dirs`: whether they may choose log directories, which only plans that the operator stores may.
    """
    plan: list[Assignment] = []
    cluster_ids: set[str] = set()
    budget = MAX_DOCUMENT_BYTES
    for name, data in named:
        budget -= len(data)
        if budget < 0:
            raise DocumentError(f"The plan is larger than {MAX_DOCUMENT_BYTES} bytes.")
        document = _parsed(name, data, with_log_dirs)
        plan.extend(_assignments(name, document, with_log_dirs))
        if len(plan) > MAX_PARTITIONS:
            raise DocumentError(f"The plan has more than {MAX_PARTITIONS} partitions.")
        cluster_id = document.get("clusterId")
        if isinstance(cluster_id, str):
            cluster_ids.add(cluster_id)
    if len(cluster_ids) > 1:
        raise DocumentError(f"The parts of the plan are for different clusters: {', '.join(sorted(cluster_ids))}.")
    return Document(tuple(plan), next(iter(cluster_ids), None))


def digest_of(
    plan: Iterable[Assignment], *, base: Iterable[Assignment] | None = None, cluster_id: str | None = None
) -> str:
    """Return the digest of a plan, or of a plan and its base.

    >>> digest_of([Assignment(Partition("a", 0), (1, 2))])
    'sha256:bf474e69cf2a53ebceed922da506365ee19ed71c4ad93ab0f425787bbb18233b'
    """
    return _digest(_entries(plan), None if base is None else _entries(base), cluster_id)


def digests_of(plan: Iterable[Assignment], base: Iterable[Assignment], cluster_id: str | None) -> tuple[str, str]:
    """Return the digest of a plan, and that of plan and base together; the plan is serialised once for both."""
    entries = _entries(plan)
    return _digest(entries, None, cluster_id), _digest(entries, _entries(base), cluster_id)


def _digest(entries: str, base: str | None, cluster_id: str | None) -> str:
    """Return the digest of the canonical form, whose entries are given."""
    members = [] if base is None else [f'"base":[{base}]']
    if cluster_id is not None:
        members.append(f'"clusterId":{json.dumps(cluster_id, ensure_ascii=False)}')
    members += [f'"partitions":[{entries}]', f'"version":{VERSION}']
    text = ",".join(members)
    return f"sha256:{hashlib.sha256(f'{{{text}}}'.encode()).hexdigest()}"


def write_document(plan: Iterable[Assignment], cluster_id: str | None) -> bytes:
    """Return a plan in its own order as Kafka's tool reads it, with no space between tokens."""
    entries = ",".join(
        f'{{"topic":{name},"partition":{index},"replicas":[{replicas}]{log_dirs and f",{log_dirs}"}}}'
        for name, index, replicas, log_dirs in _texts(plan)
    )
    cluster = "" if cluster_id is None else f',"clusterId":{json.dumps(cluster_id)}'
    return f'{{"version":{VERSION},"partitions":[{entries}]{cluster}}}'.encode()


def unpacked(name: str, data: bytes) -> bytes:
    """Unpack gzip within the limit; DocumentError when it is none, or is larger."""
    engine = zlib.decompressobj(GZIP_WINDOW)
    try:
        text = engine.decompress(data, MAX_DOCUMENT_BYTES)
    except zlib.error as error:
        raise DocumentError(f"{name} is not gzip data: {error}.") from error
    if engine.unconsumed_tail:
        raise DocumentError(f"{name} unpacks to more than {MAX_DOCUMENT_BYTES} bytes.")
    if not engine.eof:
        raise DocumentError(f"{name} is truncated gzip data.")
    return text


def _documents(raw: RawObject) -> Iterator[tuple[str, bytes]]:
    config_map = raw["metadata"]["name"]
    for key, text in sorted((raw.get("data") or {}).items()):
        if key.endswith(".json"):
            yield f"{key} of ConfigMap {config_map}", text.encode()
    for key, text in sorted((raw.get("binaryData") or {}).items()):
        if key.endswith(".json.gz"):
            name = f"{key} of ConfigMap {config_map}"
            try:
                packed = base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise DocumentError(f"{name} is not base64: {error}.") from error
            yield name, unpacked(name, packed)


def _entries(assignments: Iterable[Assignment]) -> str:
    """Return entries in canonical order."""
    ordered = sorted(assignments, key=lambda item: item.partition)
    return ",".join(
        f'{{{log_dirs and f"{log_dirs},"}"partition":{index},"replicas":[{replicas}],"topic":{name}}}'
        for name, index, replicas, log_dirs in _texts(ordered)
    )


def _texts(assignments: Iterable[Assignment]) -> Iterator[tuple[str, int, str, str]]:
    """Yield topic, partition and replicas of each as JSON has them, and the member `log_dirs`, empty if there is none.

    By hand, and what many share once: many times as fast as by json, and large plans are written often.
    """
    names: dict[str, str] = {}
    lists: dict[tuple[int, ...], str] = {}
    for item in assignments:
        topic, index = item.partition
        name = names.get(topic) or names.setdefault(topic, json.dumps(topic, ensure_ascii=False))
        replicas = lists.get(item.replicas) or lists.setdefault(item.replicas, ",".join(map(str, item.replicas)))
        log_dirs = f'"log_dirs":{json.dumps(item.log_dirs, separators=(",", ":"))}' if item.log_dirs else ""
        yield name, index, replicas, log_dirs


def _parsed(name: str, data: bytes, with_log_dirs: bool) -> dict[str, Any]:
    try:
        document = json.loads(data, object_hook=_Entries(with_log_dirs))
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{name} is not JSON: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise DocumentError(f'{name} has no list "partitions".')
    if document.get("version", VERSION) != VERSION:
        raise DocumentError(f'{name} has "version" {document["version"]!r}; the supported version is {VERSION}.')
    if not isinstance(document.get("clusterId", ""), str):
        raise DocumentError(f'{name} has a "clusterId" that is not a string.')
    if not document["partitions"]:
        raise DocumentError(f"{name} contains no partition.")
    return document


class _Entries:
    """Converts each entry of a document to an Assignment as soon as it is parsed; other objects are not changed.

    So no second copy of a large plan is held, and names and replicas that many share are held once.
    """

    def __init__(self, with_log_dirs: bool) -> None:
        self._with_log_dirs = with_log_dirs
        self._topics: dict[str, str] = {}
        self._replicas: dict[tuple[int, ...], tuple[int, ...]] = {}

    def __call__(self, entry: dict[str, Any]) -> Assignment | dict[str, Any]:
        if _problem(entry, self._with_log_dirs) is not None:
            return entry
        topic, replicas = entry["topic"], tuple(entry["replicas"])
        topic, replicas = self._topics.setdefault(topic, topic), self._replicas.setdefault(replicas, replicas)
        log_dirs = tuple(entry.get("log_dirs") or ()) if self._with_log_dirs else ()
        return Assignment(Partition(topic, entry["partition"]), replicas, log_dirs)


def _assignments(name: str, document: dict[str, Any], with_log_dirs: bool) -> Iterator[Assignment]:
    for place, entry in enumerate(document["partitions"]):
        if not isinstance(entry, Assignment):
            raise DocumentError(f'"partitions"[{place}] in {name} {_problem(entry, with_log_dirs)}.')
        yield entry


def _problem(entry: Any, with_log_dirs: bool) -> str | None:
    """Return what is wrong with an entry."""
    if not isinstance(entry, dict):
        return "is not an object"
    topic, index, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    if not isinstance(topic, str) or TOPIC_NAME.fullmatch(topic) is None:
        return f'has no valid topic name in "topic", but {str(topic)[:50]!r}'
    if not _is_id(index):
        return f'has no number from 0 in "partition", but {str(index)[:50]!r}'
    if not isinstance(replicas, list) or not 0 < len(replicas) <= MAX_REPLICAS or not all(map(_is_id, replicas)):
        return f'does not have 1 to {MAX_REPLICAS} broker IDs in "replicas"'
    log_dirs = entry.get("log_dirs")
    if with_log_dirs:
        return (
            None
            if log_dirs is None or _are_paths(log_dirs, len(replicas))
            else 'has "log_dirs" that do not fit "replicas"'
        )
    if log_dirs is not None and (not isinstance(log_dirs, list) or log_dirs.count(ANY_LOG_DIR) < len(log_dirs)):
        return 'has "log_dirs" other than "any": log directories are chosen by the goal balanceLogDirs only'
    return None


def _are_paths(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(isinstance(item, str) for item in value)


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_ID
