"""controller_mutation_rate for CreateTopics, CreatePartitions and DeleteTopics (KIP-599), through the encoding."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from controller_core.model.events import Event
from controller_core.shell.admin.handlers import answer, apis
from controller_core.shell.admin.metadata_encoder import MetadataEncoder
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.zookeeper.entity_configs import EntityConfigs
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_zookeeper.formats.configs import encode_config
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
CONTEXT = RequestContext("CLIENT", "cli", "127.0.0.1", 1, 7, "User:alice")


class World:
    """A controller, quotas in ZooKeeper, and a clock that a test sets."""

    def __init__(self, **quotas: str) -> None:
        self.zookeeper = AclZooKeeper()
        self.now_s = 5.0
        self.active: FakeActive = active_with()
        session = self.zookeeper.session()
        configs = EntityConfigs(lambda: session)
        self.quotas = MutationQuotas(configs, lambda: self.now_s)
        self.apis = apis(Random(1), dict, None, self.quotas, MetadataEncoder())
        for entity, rate in quotas.items():
            self.set_rate(entity.replace("__", "/"), rate)

    def set_rate(self, entity: str, rate: str) -> None:
        """Write a quota."""
        self.zookeeper.put(f"/config/{entity}", encode_config({"controller_mutation_rate": rate}))

    async def call(self, key: ApiKey, version: int, body: Body, **context: str) -> Body:
        """Call a handler through Kafka's encoding."""
        request = codec.decode_request(codec.encode_request(key, version, 1, None, body))[1]
        sender = replace(CONTEXT, api_version=version, **context)
        found = await answer(key, self.apis[key], lambda: self.active, _at_once, lambda: 3, sender, request)
        return codec.decode_response(key, version, codec.encode_response(key, version, 1, found))[1]

    async def create(self, name: str, partitions: int = 1, version: int = 7, **context: str) -> tuple[int, int]:
        """Create a topic; returns error code and throttle time."""
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
        body = {"topics": [topic], "timeout_ms": 1_000, "validate_only": False}
        found = await self.call(ApiKey.CREATE_TOPICS, version, body, **context)
        return found["topics"][0]["error_code"], found["throttle_time_ms"]


async def _at_once() -> None:
    pass


async def test_requests_over_the_quota_are_refused_until_the_bucket_is_back_at_zero() -> None:
    """The first request may use the burst of 11 seconds; the next one is refused with its throttle time."""
    world = World(users__alice="2.0")
    assert await world.create("a", 32) == (0, 0)
    assert await world.create("b") == (EXCEEDED, 5_000)
    world.now_s += 4
    assert await world.create("b") == (EXCEEDED, 1_000)
    world.now_s += 1
    assert await world.create("b") == (0, 0)
    assert sorted(world.active.cluster.topics) == ["a", "b"]


async def test_early_versions_succeed_with_a_throttle_time() -> None:
    """PermissiveControllerMutationQuota: below CreateTopics 6, CreatePartitions 3, DeleteTopics 5."""
    world = World(users__alice="1.0")
    assert await world.create("a", 12, version=5) == (0, 1_000)
    assert await world.create("b", 1, version=5) == (0, 2_000)
    grown = {"topics": [{"name": "a", "count": 13, "assignments": None}], "timeout_ms": 1_000, "validate_only": False}
    added = await world.call(ApiKey.CREATE_PARTITIONS, 2, grown)
    assert (added["results"][0]["error_code"], added["throttle_time_ms"]) == (0, 3_000)
    deleted = await world.call(ApiKey.DELETE_TOPICS, 4, {"topic_names": ["b"], "timeout_ms": 1_000})
    assert (deleted["responses"][0]["error_code"], deleted["throttle_time_ms"]) == (0, 4_000)


async def test_added_and_deleted_partitions_count_as_created_ones() -> None:
    """CreatePartitions from version 3 on, DeleteTopics from version 5 on."""
    world = World(users__alice="1.0")
    assert await world.create("a", 8) == (0, 0)
    grown = {"topics": [{"name": "a", "count": 12, "assignments": None}], "timeout_ms": 1_000, "validate_only": False}
    added = await world.call(ApiKey.CREATE_PARTITIONS, 3, grown)
    assert (added["results"][0]["error_code"], added["throttle_time_ms"]) == (0, 0)
    refused = await world.call(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["a"], "timeout_ms": 1_000})
    assert (refused["responses"][0]["error_code"], refused["throttle_time_ms"]) == (EXCEEDED, 1_000)
    world.now_s += 1
    deleted = await world.call(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["a"], "timeout_ms": 1_000})
    assert (deleted["responses"][0]["error_code"], deleted["throttle_time_ms"]) == (0, 0)
    assert await world.create("b") == (EXCEEDED, 12_000)
    assert (await world.call(ApiKey.CREATE_PARTITIONS, 3, {**grown, "topics": []}))["throttle_time_ms"] == 0


async def test_callers_have_separate_buckets() -> None:
    """A quota for all users: each user has a bucket; a client id's quota is shared by its users."""
    world = World(**{"users__<default>": "1.0"})
    assert await world.create("a", 20) == (0, 0)
    assert (await world.create("b"))[0] == EXCEEDED
    assert await world.create("b", principal="User:bob") == (0, 0)

    shared = World(clients__cli="1.0")
    assert await shared.create("a", 20) == (0, 0)
    assert (await shared.create("b", principal="User:bob"))[0] == EXCEEDED
    assert await shared.create("b", client_id="other") == (0, 0)


@pytest.mark.parametrize("client_id", ["", ".", "..", "a b/c\u2603"])
async def test_unstorable_client_id_has_the_default_quota(client_id: str) -> None:
    """A name that cannot be stored has no quota; the default for all client ids applies."""
    world = World(**{"clients__<default>": "1.0"})
    assert await world.create("a", 20, client_id=client_id) == (0, 0)
    assert (await world.create("b", client_id=client_id))[0] == EXCEEDED


async def test_changed_quota_applies_within_a_second() -> None:
    """It is read again after the cache entry expires."""
    world = World(users__alice="1.0")
    assert await world.create("a", 20) == (0, 0)
    assert (await world.create("b"))[0] == EXCEEDED
    world.set_rate("users/alice", "100.0")
    world.now_s += 1
    assert await world.create("b") == (0, 0)


async def test_without_a_quota_nothing_is_counted() -> None:
    """Most clusters have no quotas."""
    world = World()
    assert [await world.create(name, 500) for name in "abc"] == [(0, 0)] * 3
    assert [event.allowance for event in world.active.submitted if hasattr(event, "allowance")] == [None] * 3


async def test_concurrent_requests_of_one_bucket_are_serialised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two is decided after the first has used up the bucket."""
    world = World(users__alice="1.0")
    submit = world.active.submit

    async def slowly(event: Event) -> Any:
        await asyncio.sleep(0)
        result = await submit(event)
        await asyncio.sleep(0)
        return result

    monkeypatch.setattr(world.active, "submit", slowly)
    codes = [code for code, _ in await asyncio.gather(world.create("a", 20), world.create("b", 20))]
    assert codes == [0, EXCEEDED]


async def test_last_known_quota_applies_while_reading_fails(caplog: pytest.LogCaptureFixture) -> None:
    """A configuration that cannot be decoded must not lift a limit."""
    world = World(users__alice="1.0")
    assert await world.create("a", 20) == (0, 0)
    world.zookeeper.put("/config/users/alice", b'{"version":1,"config":{"controller_mutation_rate":5}}')
    world.now_s += 1
    assert (await world.create("b"))[0] == EXCEEDED
    assert [record.getMessage() for record in caplog.records] == [
        "Failed to read mutation quotas; keeping the last known quotas"
    ]
