"""Valid values of a body, and the errors for invalid ones."""

import uuid
from typing import Any

import pytest

from kafka_wire import ApiKey, Body, codec, compiler
from kafka_wire.codec import CodecError

LEADER_AND_ISR = ("LeaderAndIsrRequest", 7)


def leader_and_isr(**partition: Any) -> Body:
    """Return the body of a LeaderAndIsr with one partition."""
    return {"topic_states": [{"topic_name": "t", "partition_states": [partition]}]}


PARTITION = "topic_states[0].partition_states[0]"


def test_a_missing_key_has_the_default() -> None:
    """The schema's default, which need not be zero: a missing broker epoch is -1."""
    assert codec.encode(*LEADER_AND_ISR, {"broker_epoch": -1}) == codec.encode(*LEADER_AND_ISR, {})


def test_decoded_bodies_have_the_fields_of_all_versions() -> None:
    """AlterPartition has topic_name in version 3 and topic_id in version 1, although no Kafka version has both."""
    for version, sent in ((1, {"topic_name": "t"}), (3, {"topic_id": uuid.UUID(int=7)})):
        encoded = codec.encode("AlterPartitionRequest", version, {"topics": [sent]})
        (topic,) = codec.decode("AlterPartitionRequest", version, encoded)["topics"]

        assert topic == {"topic_name": "", "topic_id": uuid.UUID(int=0), "partitions": []} | sent


def test_defaults_are_not_shared() -> None:
    """Two decoded bodies share no list or dict: changing one does not change the other."""
    encoded = codec.encode("FetchRequest", 17, {})
    first, second = codec.decode("FetchRequest", 17, encoded), codec.decode("FetchRequest", 17, encoded)
    first["topics"].append({})
    first["replica_state"]["replica_id"] = 5

    assert codec.decode("FetchRequest", 17, encoded) == second


def test_an_ignorable_field_is_dropped_if_the_version_lacks_it() -> None:
    """Kafka's `ignorable`: for example a topic id for a broker without topic ids."""
    body = {"topic_states": [{"topic_name": "t", "topic_id": uuid.UUID(int=7)}]}
    (topic,) = codec.decode("LeaderAndIsrRequest", 4, codec.encode("LeaderAndIsrRequest", 4, body))["topic_states"]

    assert topic["topic_id"] == uuid.UUID(int=0)


def test_another_field_with_a_value_is_rejected_if_the_version_lacks_it() -> None:
    """Java throws UnsupportedVersionException: the value would be lost."""
    body = leader_and_isr(leader_recovery_state=1)
    assert codec.encode("LeaderAndIsrRequest", 6, body)

    with pytest.raises(CodecError) as refusal:
        codec.encode("LeaderAndIsrRequest", 5, {"is_kraft_controller": True})

    assert "LeaderAndIsrRequest v5: is_kraft_controller: this version lacks the field" in str(refusal.value)


def test_the_default_in_a_field_that_the_version_lacks_is_accepted() -> None:
    """So one body with all fields can be sent to brokers of any version."""
    body = {"is_kraft_controller": False, "type": 0}

    assert codec.encode("LeaderAndIsrRequest", 4, {}) == codec.encode("LeaderAndIsrRequest", 4, body)


REFUSALS: list[tuple[Any, str, str]] = [
    ({"brokers": 1}, "", "unknown key 'brokers'"),
    (leader_and_isr(leader_id=1), PARTITION, "unknown key 'leader_id'"),
    (leader_and_isr(leader=1 << 31), f"{PARTITION}.leader", "2147483648 is not a valid int32"),
    (leader_and_isr(leader="1"), f"{PARTITION}.leader", "'1' is not a valid int32"),
    (leader_and_isr(leader=None), f"{PARTITION}.leader", "must not be null"),
    (leader_and_isr(isr=[1, "2"]), f"{PARTITION}.isr[1]", "'2' is not a valid int32"),
    (leader_and_isr(isr=b"12"), f"{PARTITION}.isr", "expected a list, got bytes"),
    (leader_and_isr(isr=None), f"{PARTITION}.isr", "must not be null"),
    ({"topic_states": {"topic_name": "t"}}, "topic_states", "expected a list, got dict"),
    ({"topic_states": ["t"]}, "topic_states[0]", "expected a dict, got str"),
    ({"topic_states": [{"topic_name": b"t"}]}, "topic_states[0].topic_name", "expected a str, got bytes"),
    ({"topic_states": [{"topic_name": "t" * 40_000}]}, "topic_states[0].topic_name", "a string of 40000 bytes exceeds"),
    ({"topic_states": [{"topic_name": "\ud800"}]}, "topic_states[0].topic_name", "UTF-8 cannot encode"),
    ({"topic_states": [{"topic_id": "x"}]}, "topic_states[0].topic_id", "expected a uuid.UUID, got str"),
    ([], "", "expected a dict, got list"),
]


@pytest.mark.parametrize(("body", "field", "reason"), REFUSALS)
def test_an_invalid_value_is_rejected_with_its_path(body: Any, field: str, reason: str) -> None:
    """The error names message, version, field and reason."""
    with pytest.raises(CodecError) as refusal:
        codec.encode(*LEADER_AND_ISR, body)

    assert ("LeaderAndIsrRequest", 7, field) == (refusal.value.message, refusal.value.version, refusal.value.field)
    assert reason in refusal.value.reason


def test_bytes_must_be_bytes() -> None:
    """A list of integers or a string would be encoded differently."""
    for wrong in ("abc", [1, 2], 5):
        with pytest.raises(CodecError, match="auth_bytes: expected bytes"):
            codec.encode("SaslAuthenticateRequest", 2, {"auth_bytes": wrong})


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 16382, 16383, 32767])
@pytest.mark.parametrize("version", [1, 4])
def test_lengths_at_the_edges_of_their_encodings(length: int, version: int) -> None:
    """Compact lengths grow by a byte at 127 and at 16383 (they are sent plus one); classic ones never do."""
    names = ["x" * length] * 2
    encoded = codec.encode("DeleteTopicsRequest", version, {"topic_names": names})

    assert names == codec.decode("DeleteTopicsRequest", version, encoded)["topic_names"]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 126, 127, 128, 20_000])
@pytest.mark.parametrize("version", [1, 4])
def test_counts_at_the_edges_of_their_encodings(count: int, version: int) -> None:
    """The same for arrays, and the lengths up to which packers are cached."""
    body = leader_and_isr(isr=list(range(count)), replicas=[1, 2], adding_replicas=[7] * count, partition_epoch=5)
    if version == 1:
        body = {"ungrouped_partition_states": [{"isr": list(range(count)), "replicas": [1, 2], "partition_epoch": 5}]}
    encoded = codec.encode("LeaderAndIsrRequest", version, body)

    assert encoded == codec.encode(
        "LeaderAndIsrRequest", version, codec.decode("LeaderAndIsrRequest", version, encoded)
    )


def test_an_unknown_message_or_version_is_rejected() -> None:
    """The error contains the known versions."""
    with pytest.raises(CodecError, match="NoSuchRequest: no such message"):
        codec.encode("NoSuchRequest", 0, {})
    with pytest.raises(CodecError, match="LeaderAndIsrRequest v8: unknown version: 0 to 7 are known"):
        codec.decode("LeaderAndIsrRequest", 8, b"")
    with pytest.raises(CodecError):
        codec.versions("NoSuchRequest")


def test_versions_include_both_releases() -> None:
    """Fetch 0 to 3 come from Kafka 3.9, 18 from 4.3; LeaderAndIsr is flexible from 4, SaslHandshake never."""
    assert codec.versions("FetchRequest") == (0, 18)
    assert codec.flexible_from("LeaderAndIsrRequest") == 4
    assert codec.flexible_from("SaslHandshakeRequest") is None


def test_a_prepared_api_is_not_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """An election waits for the first use of several messages, a millisecond each."""
    for compiling in (compiler.encoder, compiler.decoder, compiler.bounded_decoder):
        compiling.cache_clear()
    codec.prepare(ApiKey.VOTE, 2)
    monkeypatch.delattr(compiler, "compiled")
    request, response = codec.encode_request(ApiKey.VOTE, 2, 7, None, {}), codec.encode_response(ApiKey.VOTE, 2, 7, {})

    header, body = codec.decode_request(request)
    assert body == codec.decode_bounded(request, header, 1_000)
    assert codec.decode_response(ApiKey.VOTE, 2, response)[0] == header.correlation_id
