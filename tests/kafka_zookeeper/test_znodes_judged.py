"""Comparison with Kafka 3.9.2's decoders on thousands of valid and damaged documents.

Kafka decodes every accepted document as the same value, treats every document with `not_json` as empty (or throws), and encodes values
as the same bytes. Documents that only this codec rejects have one of the reasons below.
"""

import base64
import json
import random
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import (
    AclEntry,
    AclResource,
    BrokerRegistration,
    FormatError,
    TopicAssignment,
    TopicPartition,
)
from kafka_zookeeper.formats.configs import decode_config, encode_config
from lab.peers.java_process import java_command
from tests.kafka_zookeeper.test_golden_formats import GOLDEN

pytestmark = pytest.mark.java

SPOILT_PER_DOCUMENT = 150
SEED = 20_260

STRICTER = {
    "": (
        "from 0 to",  # Kafka would accept a partition or a broker below 0 and fail later
        "from -1 to 65535",
        "a number from 0",
        "surrogate pair",  # which cannot be encoded again
    ),
    "acl_change": ("unknown resource type", "cannot name a znode"),  # Kafka would not find the znode
    "extended_acl_change": ("unknown resource type", "cannot name a znode", "is missing", "must be a"),
    "broker": (
        "must be LISTENER://host:port",
        "from 1 to",
        "min_version",
        "max_version",
    ),  # Kafka checks some of these later
    "producer_ids": ("must have 1 to",),  # Kafka would accept a block that ends before it begins
    "reassignment": (
        "is missing",
        "must be a JSON",
        "'version' must be",
    ),  # Kafka accepts null as a name, "1" as a number
    "topic": ("_replicas",),  # of partitions that the topic does not have, which Kafka ignores
}


def _topic_partitions(found: tuple[TopicPartition, ...]) -> list[str]:
    return sorted({f"{topic}-{partition}" for topic, partition in found})


def _assignment(found: TopicAssignment) -> list[Any]:
    parts = {
        str(partition): [list(of_kind.get(partition, ())) for of_kind in (found.replicas, found.adding, found.removing)]
        for partition in found.replicas
    }
    return ["" if found.topic_id is None else formats.encode_topic_id(found.topic_id), parts]


def _registration(found: BrokerRegistration) -> list[Any]:
    endpoints = [
        [endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol] for endpoint in found.endpoints
    ]
    features = {
        name: {"min_version": feature.lowest, "max_version": feature.highest}
        for name, feature in found.features.items()
    }
    return [endpoints, found.rack or "", found.jmx_port, found.version, features]


def _acls(found: Iterable[AclEntry]) -> list[dict[str, str]]:
    return [
        {
            "principal": entry.principal,
            "permissionType": entry.permission,
            "operation": entry.operation,
            "host": entry.host,
        }
        for entry in sorted(found)
    ]


def _acl_path(found: AclResource) -> str:
    return paths.acls(found.resource_type, found.name, prefixed=found.pattern_type == "PREFIXED")


Decode = Callable[[bytes], Any]
KINDS: dict[str, tuple[Decode, Callable[[Any], Any], Callable[[Any], bytes] | None]] = {
    "controller": (formats.decode_controller, lambda found: found.broker_id, None),
    "controller_epoch": (formats.decode_controller_epoch, lambda found: found, None),
    "state": (
        partial(formats.decode_partition_state, "/p"),
        lambda found: [
            found.leader,
            found.leader_epoch,
            list(found.isr),
            found.controller_epoch,
            found.leader_recovery_state,
        ],
        formats.encode_partition_state,
    ),
    "topic": (partial(formats.decode_topic, "t"), _assignment, formats.encode_topic),
    "broker": (partial(formats.decode_broker, 1), _registration, None),
    "config": (partial(decode_config, "/c"), lambda found: found, encode_config),
    "isr_change": (partial(formats.decode_isr_change, "n"), _topic_partitions, None),
    "election": (formats.decode_preferred_replica_election, _topic_partitions, None),
    "log_dir": (partial(formats.decode_log_dir_event, "n"), lambda found: found, None),
    "reassignment": (
        formats.decode_reassignment,
        lambda found: {f"{topic}-{partition}": list(brokers) for (topic, partition), brokers in found.items()},
        None,
    ),
    "producer_ids": (
        formats.decode_producer_id_block,
        lambda found: [found.broker_id, found.first_producer_id, found.last_producer_id],
        formats.encode_producer_id_block,
    ),
    "features": (formats.decode_features, lambda found: [found.version, int(found.status), found.levels], None),
    "cluster_id": (formats.decode_cluster_id, lambda found: found, None),
    "acls": (partial(formats.decode_acls, "/a"), _acls, formats.encode_acls),
    "acl_change": (partial(formats.decode_acl_change, "n"), _acl_path, formats.encode_acl_change),
    "extended_acl_change": (partial(formats.decode_extended_acl_change, "n"), _acl_path, formats.encode_acl_change),
}
"""The decoder, the judge's view of its value, and the encoder if the judge encodes the value again."""

NO_JSON = {"acl_change"}
"""Plain text, which is damaged as bytes and not as JSON."""

ODD_VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    "1",
    "",
    "ä\U0001f600",
    2**31,
    -(2**31) - 1,
    [],
    [1],
    {},
    {"0": [1]},
    [[]],
    "x" * 30,
]


def _mutated(chance: random.Random, value: Any) -> Any:
    """Return a JSON value with one part replaced, removed or added."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        if chance.random() < 0.2:
            return {other: element for other, element in value.items() if other != key}
        return {**value, chance.choice(["01", "extra", key, key, key]): _mutated(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], _mutated(chance, value[place]), *value[place + 1 :]]
    return chance.choice(ODD_VALUES)


def _damaged(chance: random.Random, data: bytes) -> bytes:
    """Return data with a byte changed, truncated, or with bytes added at the end."""
    place = chance.randrange(len(data))
    return chance.choice(
        [
            data[:place],
            data[:place] + bytes([chance.randrange(128)]) + data[place + 1 :],
            data + b" more",
            b" \n" + data,
        ]
    )


def _documents(kind: str) -> list[bytes]:
    """Return valid documents of a kind, and many damaged ones; always the same."""
    chance = random.Random(f"{SEED} {kind}")
    decode = KINDS[kind][0]
    good = [
        document.encode()
        for name, _, golden_decode, _, document in GOLDEN
        if getattr(golden_decode, "func", golden_decode) is getattr(decode, "func", decode)
    ]
    assert good
    if kind == "topic":
        sizes = [0, 1, 11, 12, 13, 48, 100, 397, 1_000]
        good += [
            formats.encode_topic(TopicAssignment({index: (index % 7,) for index in range(size)})) for size in sizes
        ]
    if kind == "config":
        good += [_config(chance, size) for size in range(11) for _ in range(20)]
    damaged = []
    for document in good[:12]:
        for _ in range(SPOILT_PER_DOCUMENT):
            if kind not in NO_JSON:
                changed = _mutated(chance, json.loads(document))
                damaged.append(json.dumps(changed, ensure_ascii=chance.random() < 0.5).encode())
            damaged.append(_damaged(chance, document))
    return [*good, *(document for document in damaged if document)]


def _config(chance: random.Random, size: int) -> bytes:
    letters = 'abcdefghij."\\/\x01\u00e9\u2028\U0001f600'
    names = ["".join(chance.choices(letters, k=12)) for _ in range(size)]
    return json.dumps({"version": 1, "config": {name: name[::-1] for name in names}}).encode()


def _tried(decode: Decode, document: bytes) -> tuple[Any, FormatError | None]:
    try:
        return decode(document), None
    except FormatError as error:
        return None, error


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[list[Any]]]:
    """Return Kafka's results for all documents of all kinds, from one JVM."""
    requests = [(kind, document) for kind in KINDS for document in _documents(kind)]
    lines = "".join(f"{kind} {base64.b64encode(document).decode()}\n" for kind, document in requests)
    command = java_command(str(Path(__file__).parent / "ZnodeJudge.java"), heap="128m", log4j="log4j-tools.properties")
    done = subprocess.run(command, input=lines.encode(), check=True, capture_output=True, timeout=100)
    answers: dict[str, list[list[Any]]] = {kind: [] for kind in KINDS}
    for (kind, _), line in zip(requests, done.stdout.splitlines(), strict=True):
        answers[kind].append(json.loads(line))
    return answers


def _sorted_acls(verdict: list[Any]) -> list[Any]:
    """Sort ACLs: Kafka keeps them in a hash table whose order differs from process to process."""
    written = json.loads(verdict[2])
    ours = [
        sorted(each, key=lambda acl: [acl[key] for key in ("principal", "permissionType", "operation", "host")])
        for each in (verdict[1], written["acls"])
    ]
    return [verdict[0], ours[0], _compact({**written, "acls": ours[1]})]


def _compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("kind", KINDS)
def test_decoders_agree_with_kafka(kind: str, verdicts: dict[str, list[list[Any]]]):
    """Each decoder, compared with that in kafka.zk.ZkData."""
    decode, view, encode = KINDS[kind]
    for document, judged in zip(_documents(kind), verdicts[kind], strict=True):
        found, error = _tried(decode, document)
        verdict = _sorted_acls(judged) if kind == "acls" and judged[0] == "value" else judged
        if error is not None:
            refused = verdict[0] != "value" or (error.not_json and verdict[1] in ([], {}, ["", {}]))
            reasons = (*STRICTER[""], *STRICTER.get(kind, ()))
            assert refused or any(reason in error.reason for reason in reasons), (document, verdict, error)
            continue
        assert verdict[:2] == ["value", view(found)], document
        if encode is not None:
            assert verdict[2] == encode(found).decode()
