"""The process of a standalone broker."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_log.errors import FolderLockedError
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_wire import ApiKey, ErrorCode, codec, file_slice
from kafka_wire.file_slice import SharedFile
from kafka_wire.records import decode_batches
from light_broker.core.metadata_view import ConfigResource
from light_broker.shell.process import BrokerProcess, ProcessOptions
from light_broker.shell.settings_reading import read_settings
from tests.light_broker.hosting import records
from tests.light_broker.serving import BASE, HOST, TIMEOUT_MS, client_of, create_topic, standalone, topics_of


async def produce(process: BrokerProcess, topic: str, *values: str) -> ErrorCode:
    """Produce a batch to partition 0."""
    data = {"name": topic, "partition_data": [{"index": 0, "records": records(*values)}]}
    async with client_of(process) as client:
        answer = await client.call(
            ApiKey.PRODUCE,
            {"acks": -1, "timeout_ms": TIMEOUT_MS, "topic_data": [data]},
            version=9,
            timeout_ms=TIMEOUT_MS,
        )
    return ErrorCode.of(answer["responses"][0]["partition_responses"][0]["error_code"])


async def end_offset(process: BrokerProcess, topic: str) -> int:
    """Return the end of partition 0."""
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]}
    async with client_of(process) as client:
        answer = await client.call(ApiKey.LIST_OFFSETS, body, version=7, timeout_ms=TIMEOUT_MS)
    offset: int = answer["topics"][0]["partitions"][0]["offset"]
    return offset


async def consume(process: BrokerProcess, topic: str) -> list[bytes | None]:
    """Return the values of the records of partition 0."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    body = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"topic": topic, "partitions": [partition]}]}
    async with client_of(process) as client:
        answer = await client.call(ApiKey.FETCH, body, version=11, timeout_ms=TIMEOUT_MS)
    data = answer["responses"][0]["partitions"][0]["records"]
    return [record.value for batch in decode_batches(data) for record in batch.records]


@pytest.mark.shows("F63")
async def test_topics_records_and_configs_are_there_after_a_restart(tmp_path: Path) -> None:
    """And the leader epoch has risen."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        await create_topic(client, "orders", partitions=2)
        assert await produce(process, "orders", "a", "b") is ErrorCode.NONE
        before = (await topics_of(client))["orders"]
    async with standalone(tmp_path) as process, client_of(process) as client:
        after = (await topics_of(client))["orders"]
        assert await end_offset(process, "orders") == 2
        assert await produce(process, "orders", "c") is ErrorCode.NONE

    assert after["topic_id"] == before["topic_id"]
    assert [partition["leader_epoch"] for partition in before["partitions"]] == [0, 0]
    assert [partition["leader_epoch"] for partition in after["partitions"]] == [1, 1]


async def test_records_that_are_not_cached_are_read_by_a_thread_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop, on which all other clients are served, does not wait for the disk (KAFKA-7504)."""
    readers: list[str] = []
    read_blocking = SharedFile.read_blocking

    def noted(file: SharedFile, size: int, position: int) -> bytes:
        readers.append(threading.current_thread().name)
        return read_blocking(file, size, position)

    monkeypatch.setattr(file_slice, "NOWAIT", None)  # nothing is known to be cached
    monkeypatch.setattr(SharedFile, "read_blocking", noted)
    async with standalone(tmp_path) as process, client_of(process) as client:
        await create_topic(client, "orders")
        await produce(process, "orders", "a", "b")

        assert await consume(process, "orders") == [b"a", b"b"]
    assert len(readers) == 1
    assert readers != [threading.main_thread().name]


async def test_a_new_topic_is_served_while_a_directory_cannot_be_read(tmp_path: Path) -> None:
    """No log of a new partition can be in that directory (LogManager.getOrCreateLog, isNew)."""
    (tmp_path / "unreadable").write_text("a file where a disk is not mounted")
    directories = {"log.dirs": f"{tmp_path / 'data'},{tmp_path / 'unreadable'}"}

    async with standalone(tmp_path, directories) as process, client_of(process) as client:
        await create_topic(client, "orders", partitions=2)

        assert await produce(process, "orders", "a") is ErrorCode.NONE


async def test_a_deleted_topic_may_be_created_again_and_is_empty(tmp_path: Path) -> None:
    """Its logs are gone when the response is sent."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        await create_topic(client, "orders")
        await produce(process, "orders", "a")
        deleted = await client.call(
            ApiKey.DELETE_TOPICS, {"topics": [{"name": "orders"}], "timeout_ms": 1}, timeout_ms=TIMEOUT_MS
        )
        assert [response["error_code"] for response in deleted["responses"]] == [ErrorCode.NONE]
        await create_topic(client, "orders")

        assert await end_offset(process, "orders") == 0


async def test_a_changed_config_takes_effect_without_a_restart(tmp_path: Path) -> None:
    """max.message.bytes of the topic, and message.max.bytes of the broker where the topic has none."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        await create_topic(client, "orders")
        assert await produce(process, "orders", "x" * 2000) is ErrorCode.NONE
        for kind, name, config in ((4, "1", "message.max.bytes"), (2, "orders", "max.message.bytes")):
            change = {"name": config, "config_operation": 0, "value": "1000"}
            resource = {"resource_type": kind, "resource_name": name, "configs": [change]}
            request = {"resources": [resource], "validate_only": False}
            await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, timeout_ms=TIMEOUT_MS)
            assert await produce(process, "orders", "x" * 2000) is ErrorCode.MESSAGE_TOO_LARGE
            change["config_operation"] = 1
            await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, timeout_ms=TIMEOUT_MS)

        assert await produce(process, "orders", "x" * 2000) is ErrorCode.NONE
        assert process.broker.view.dynamic_configs(ConfigResource(ConfigResourceType.TOPIC, "orders")) == {}


async def test_a_changed_limit_of_connections_takes_effect_without_a_restart(tmp_path: Path) -> None:
    """Dynamic configs of brokers (KIP-226, KIP-402). Connections that exceed the new limit stay."""
    change = {"name": "max.connections.per.ip", "config_operation": 0, "value": "1"}
    resource = {"resource_type": ConfigResourceType.BROKER, "resource_name": "", "configs": [change]}
    async with standalone(tmp_path) as process, client_of(process) as client:
        body = {"resources": [resource], "validate_only": False}
        await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, body, timeout_ms=TIMEOUT_MS)
        while True:
            reader, writer = await asyncio.open_connection(HOST, process.ports["PLAINTEXT"])
            with suppress(TimeoutError):
                # The limit applies a moment after the answer: hosts in it are resolved first.
                assert await asyncio.wait_for(reader.read(), 0.05) == b""
                break
            writer.close()
        assert await topics_of(client) == {}


async def test_api_versions_shows_produce_from_version_0(tmp_path: Path) -> None:
    """KAFKA-18659: librdkafka reads from versions 0 to 2 which codecs a broker knows. They are not served."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        answer = await client.call(ApiKey.API_VERSIONS, {}, version=0, timeout_ms=TIMEOUT_MS)

    shown = {api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]}
    assert shown[ApiKey.PRODUCE] == (0, 13)
    assert shown[ApiKey.FETCH] == (4, 18)
    assert ApiKey.SASL_HANDSHAKE not in shown


async def test_an_unknown_version_of_api_versions_is_answered_in_version_0(tmp_path: Path) -> None:
    """KIP-511: UNSUPPORTED_VERSION with the versions of ApiVersions."""
    frame = codec.encode_request(ApiKey.API_VERSIONS, 4, 7, "test", {})
    frame = frame[:2] + (99).to_bytes(2) + frame[4:]
    async with standalone(tmp_path) as process, client_of(process) as client:
        response = await client.call_raw(frame, timeout_ms=TIMEOUT_MS)

    _, body = codec.decode_response(ApiKey.API_VERSIONS, 0, response)
    assert body["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    assert [(api["api_key"], api["max_version"]) for api in body["api_keys"]] == [(ApiKey.API_VERSIONS, 4)]


async def test_a_request_for_an_api_that_is_not_served_only_closes_its_connection(tmp_path: Path) -> None:
    """As Kafka 4 does; other clients go on."""
    frame = codec.encode_request(ApiKey.CREATE_DELEGATION_TOKEN, 1, 7, "test", {"renewers": [], "max_lifetime_ms": -1})
    async with standalone(tmp_path) as process, client_of(process) as other:
        reader, writer = await asyncio.open_connection(HOST, process.ports["PLAINTEXT"])
        writer.write(len(frame).to_bytes(4) + frame)
        assert await reader.read() == b""
        writer.close()

        assert await topics_of(other) == {}


async def test_probes_and_metrics_are_served(tmp_path: Path) -> None:
    """Without an HTTP library."""
    async with standalone(tmp_path, metrics=True) as process:
        assert process.metrics_port is not None
        statuses = {
            path: (await get(process.metrics_port, path))[0] for path in ("/healthz", "/readyz", "/metrics", "/x")
        }
        metrics = (await get(process.metrics_port, "/metrics"))[1]
        process.stop()
        stopping = await get(process.metrics_port, "/readyz")

    assert b'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"} 0.0' in metrics
    assert statuses == {"/healthz": 200, "/readyz": 200, "/metrics": 200, "/x": 404}
    assert stopping == (503, b"the broker is stopping\n")


async def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of an HTTP GET."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ")[1]), body


async def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    """The second one does not start, and the first one serves on."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        await create_topic(client, "orders")
        read = read_settings({**BASE, "log.dirs": str(tmp_path)})
        with pytest.raises(FolderLockedError):
            await BrokerProcess(read.settings, ProcessOptions()).run()

        assert list(await topics_of(client)) == ["orders"]
