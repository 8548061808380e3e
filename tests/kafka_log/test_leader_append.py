"""Batches that a leader accepts from clients, and the fields that it sets in them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.errors import RefusedAppendError
from kafka_log.format.batches import read_batches
from kafka_log.format.leader_append import AppendSettings, LeaderBatch, leader_batch
from kafka_log.format.producer_batches import read_producer_batches
from kafka_log.format.producers import Origin
from kafka_wire import ErrorCode
from kafka_wire.compression import Compression, pack
from kafka_wire.records import HEADER_BYTES, Record, batch_headers, decode_batches, encode_batch
from tests.kafka_log.batches import fast_folder
from tests.kafka_log.judge import NOW_MS, PartitionJudge

ATTRIBUTES_AT, LAST_DELTA_AT, MAX_TIMESTAMP_AT, COUNT_AT = 21, 23, 35, 57


def changed(content: bytes, position: int, value: bytes) -> bytes:
    """Change bytes of a batch behind its checksum, which is made right again."""
    changed = bytearray(content)
    changed[position : position + len(value)] = value
    struct.pack_into(">I", changed, 17, google_crc32c.value(bytes(changed[21:])))
    return bytes(changed)


def lead(content: bytes, settings: AppendSettings | None = None, **arguments: Any) -> LeaderBatch:
    """Validate a client's batch at offset 100. Its bytes contain everything that is known of the batch."""
    values: dict[str, Any] = {"base_offset": 100, "leader_epoch": 3, "origin": Origin.CLIENT, "now_ms": NOW_MS}
    made = leader_batch(content, settings or AppendSettings(), **(values | arguments))
    assert [made.batch] == list(read_batches(stored(made)))
    assert made.read_producers() == read_producer_batches(stored(made))
    return made


def stored(made: LeaderBatch) -> bytes:
    """Return the bytes of the batch in the log."""
    return made.head + made.checked


def refusal(content: bytes, settings: AppendSettings | None = None, **arguments: Any) -> RefusedAppendError:
    """Return the error."""
    with pytest.raises(RefusedAppendError) as refused:
        lead(content, settings, **arguments)
    return refused.value


def record(offset: int = 0, key: bytes | None = b"key", timestamp_ms: int = NOW_MS, value: bytes = b"value") -> Record:
    """Return a record."""
    return Record(offset, timestamp_ms, key, value)


TWO = encode_batch([record(), record(1)])


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_formats_than_2_are_refused_with_the_reason(magic: int) -> None:
    """KIP-896: Kafka 4 has no other format."""
    found = refusal(TWO[:16] + bytes([magic]) + TWO[17:])

    assert (found.error_code, str(found)) == (
        ErrorCode.INVALID_RECORD,
        f"The batch has message format {magic}, only 2 is supported. Use a client of Kafka 0.11 or later.",
    )


@pytest.mark.parametrize("content", [b"", TWO[:30], TWO[:-1], TWO + TWO])
def test_anything_but_one_whole_batch_is_refused(content: bytes) -> None:
    """ProduceRequest.validateRecords: since version 3 a partition has exactly one batch."""
    assert refusal(content).error_code is ErrorCode.INVALID_RECORD


def test_an_incomplete_batch_behind_the_first_is_ignored() -> None:
    """UnifiedLog.trimInvalidBytes."""
    assert lead(TWO + TWO[:30]) == lead(TWO)


def test_a_batch_gets_its_offset_and_epoch_and_keeps_its_checksum() -> None:
    """The checksum covers neither."""
    appended = lead(TWO)
    ((_, header),) = batch_headers(stored(appended))

    assert (header.base_offset, header.partition_leader_epoch, appended.batch.last_offset) == (100, 3, 101)
    assert stored(appended)[16:] == TWO[16:]


def test_a_wrong_checksum_is_a_corrupt_message() -> None:
    """On its way to the broker."""
    assert refusal(TWO[:-1] + b"?").error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_bomb_is_too_large(codec: Compression) -> None:
    """A producer may split such a batch."""
    bomb = encode_batch([record(value=bytes(1_000_000))], compression=codec)

    assert lead(bomb).batch.last_offset == 100
    assert refusal(bomb, AppendSettings(max_unpacked_bytes=999_999)).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_every_record_at_fault_is_named() -> None:
    """KIP-467: an invalid timestamp decides the error code."""
    content = encode_batch([record(key=None), record(1), record(2, timestamp_ms=NOW_MS - 11), record(3, key=None)])
    keys = refusal(content, AppendSettings(is_compacted=True))
    both = refusal(content, AppendSettings(is_compacted=True, timestamp_before_max_ms=10))

    assert (keys.error_code, [index for index, _ in keys.record_errors]) == (ErrorCode.INVALID_RECORD, [0, 3])
    assert (both.error_code, [index for index, _ in both.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [0, 2, 3])


def test_offsets_that_are_not_consecutive_are_renumbered() -> None:
    """Kafka does so only where it changes the codec: it stores other batches with their gaps, or fails on compressed ones."""
    content = encode_batch([record(), record(5), record(5)])
    content = changed(content, LAST_DELTA_AT, struct.pack(">i", 2))
    (found,) = decode_batches(stored(lead(content)))

    assert [record.offset for record in found.records] == [100, 101, 102]


def test_without_its_package_a_codec_passes_through_unless_its_records_must_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compacted topic needs keys, and another codec needs the records."""
    content = encode_batch([record()], compression=Compression.ZSTD)
    monkeypatch.setattr("kafka_wire.compression._library", lambda: None)

    assert stored(lead(content))[16:] == content[16:]
    assert lead(content, AppendSettings(log_append_time=True)).batch.max_timestamp_ms == NOW_MS
    for settings in (AppendSettings(is_compacted=True), AppendSettings(compression=Compression.GZIP)):
        assert refusal(content, settings).error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@given(st.data())
def test_hostile_records_are_refused_and_never_raise_anything_else(data: st.DataObject) -> None:
    """With a right checksum, in every codec."""
    codec = data.draw(st.sampled_from(list(Compression)))
    records = bytearray(encode_batch([record(), record(1, None), record(2)])[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(1, 4))):
        records[data.draw(st.integers(0, len(records) - 1))] = data.draw(st.integers(0, 255))
    packed = pack(codec, bytes(records))
    content = encode_batch([record(), record(1), record(2)])[:HEADER_BYTES] + packed
    content = content[:8] + struct.pack(">i", len(content) - 12) + content[12:]
    content = changed(content, ATTRIBUTES_AT, struct.pack(">h", codec))
    try:
        appended = lead(content, AppendSettings(compression=data.draw(st.none() | st.just(Compression.NONE))))
    except RefusedAppendError:
        return
    (found,) = decode_batches(stored(appended))
    assert [record.offset for record in found.records] == [100, 101, 102]


CODECS = st.sampled_from(list(Compression))
RECORDS = st.lists(
    st.tuples(
        st.sampled_from([None, b"", b"key"]),
        st.sampled_from([NOW_MS, NOW_MS - 50, NOW_MS + 50, NOW_MS - 200, NOW_MS + 200, -1, 0]),
        st.binary(max_size=70),
        st.lists(st.tuples(st.just("name"), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=4,
)
HEADERS = st.sampled_from(
    [
        *[{}] * 6,
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0},
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": -1},
        {"is_control": True},
        {"base_offset": 7},
        {"log_append_time": True},
        {"log_append_time": True, "max_timestamp": NOW_MS + 7},
        {"max_timestamp": NOW_MS + 7},
        {"count": 0},
        {"count": 9},
        {"count": -1},
        {"last_delta": 9},
        {"last_delta": -1},
        {"gap": True},
    ]
)
CONFIGS = st.fixed_dictionaries(
    {
        "compression.type": st.sampled_from(["producer"] * 4 + ["uncompressed", "gzip", "lz4"]),
        "message.timestamp.type": st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"]),
        "cleanup.policy": st.sampled_from(["delete", "delete", "compact"]),
        "max.message.bytes": st.sampled_from([1_000, 1_000, 120]),
        "message.timestamp.before.max.ms": st.sampled_from([2**63 - 1, 100]),
        "message.timestamp.after.max.ms": st.just(100),
    }
)


def settings_of(config: dict[str, Any]) -> AppendSettings:
    """Return a topic's configuration as settings."""
    codecs = {"producer": None, "uncompressed": Compression.NONE, "gzip": Compression.GZIP, "lz4": Compression.LZ4}
    return AppendSettings(
        max_message_bytes=config["max.message.bytes"],
        compression=codecs[config["compression.type"]],
        is_compacted=config["cleanup.policy"] == "compact",
        log_append_time=config["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=config["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=config["message.timestamp.after.max.ms"],
    )


def client_batch(records: list[Any], header: dict[str, Any], codec: Compression, target: Compression | None) -> bytes:
    """Encode a client's batch with what is wrong in its header. Kafka renumbers offsets only where it changes the codec."""
    header = dict(header)
    special = {
        key: header.pop(key)
        for key in ("log_append_time", "max_timestamp", "count", "last_delta", "gap", "base_offset")
        if key in header
    }
    step = 2 if "gap" in special and target not in {None, codec} else 1
    content = encode_batch(
        [
            Record(special.get("base_offset", 0) + step * index, timestamp, key, value, tuple(headers))
            for index, (key, timestamp, value, headers) in enumerate(records)
        ],
        compression=codec,
        **header,
    )
    content = changed(content, LAST_DELTA_AT, struct.pack(">i", special.get("last_delta", len(records) - 1)))
    if "count" in special:
        content = changed(content, COUNT_AT, struct.pack(">i", special["count"]))
    if "max_timestamp" in special:
        content = changed(content, MAX_TIMESTAMP_AT, struct.pack(">q", special["max_timestamp"]))
    if "log_append_time" in special:
        content = changed(content, ATTRIBUTES_AT + 1, bytes([content[ATTRIBUTES_AT + 1] | 8]))
    return content


PLAIN = {
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "max.message.bytes": 1_000,
    "message.timestamp.before.max.ms": 100,
    "message.timestamp.after.max.ms": 100,
}


@pytest.mark.java
@given(RECORDS, HEADERS, CODECS, CONFIGS)
@example([(b"key", NOW_MS, b"", [])], {"log_append_time": True, "max_timestamp": NOW_MS + 7}, Compression.NONE, PLAIN)
@example([(b"key", NOW_MS, b"", [])], {"max_timestamp": NOW_MS + 7}, Compression.NONE, PLAIN)
@example([(b"key", -1, b"", [])], {"log_append_time": True}, Compression.GZIP, PLAIN)
@example([(b"key", NOW_MS, b"", []), (b"key", 0, b"", [])], {}, Compression.NONE, PLAIN | {"cleanup.policy": "compact"})
def test_a_leader_stores_and_refuses_what_kafkas_does(
    partition_judge: PartitionJudge,
    records: list[Any],
    header: dict[str, Any],
    codec: Compression,
    config: dict[str, Any],
) -> None:
    """LogValidator: error codes, records at fault, and the stored bytes; of a batch that is compressed again, its content."""
    settings = settings_of(config)
    content = client_batch(records, header, codec, settings.compression)
    expected: dict[str, Any]
    ours = b""
    try:
        ours = stored(lead(content, settings, base_offset=0))
        expected = {"first_offset": 0, "last_offset": len(records) - 1}
    except RefusedAppendError as error:
        expected = {"error": error.error_code.name}
        if error.record_errors:
            expected["record_errors"] = [index for index, _ in error.record_errors]

    with fast_folder() as folder:
        answer = partition_judge.run(folder / "t-0", ("lead", content, 3, "CLIENT", 0), config=config)
        (result,) = answer["results"]
        assert {key: value for key, value in result.items() if key != "message"} == expected, result
        assert_same(
            folder / "t-0" / f"{0:020d}.log",
            ours,
            is_packed=settings.compression not in {None, codec, Compression.NONE},
        )


def assert_same(path: Path, content: bytes, *, is_packed: bool) -> None:
    """Compare a segment with bytes, or with their content."""
    if not is_packed:
        assert path.read_bytes() == content
        return
    ours, kafkas = (
        [(batch.header.attributes, batch.header.max_timestamp_ms, batch.records) for batch in decode_batches(log_bytes)]
        for log_bytes in (content, path.read_bytes())
    )
    assert kafkas == ours
