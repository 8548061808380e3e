"""Calls of handlers through Kafka's encoding: request and response are encoded and decoded in the requested version."""

from collections.abc import Mapping
from typing import Any

from controller_core.model import Broker, Replicas
from controller_core.shell.active import TopicDefault
from controller_core.shell.admin.handlers import handlers
from controller_core.zookeeper_mode.apis import SERVED
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, codec
from kafka_wire.encoded_body import EncodedBody
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with


def latest(key: ApiKey) -> int:
    """Return the highest version that the controller serves."""
    return int(SERVED[key].highest)


async def call(
    active: FakeActive | None,
    key: ApiKey,
    body: Body,
    version: int | None = None,
    *,
    listener: str = "CLIENT",
    topic_defaults: dict[str, TopicDefault] | None = None,
) -> Body:
    """Send a request and return its response, by default in the latest version."""
    version = latest(key) if version is None else version
    request = codec.decode(key.message + "Request", version, codec.encode(key.message + "Request", version, body))
    handler = handlers(
        lambda: active, random=None if active is None else active.random, topic_defaults=lambda: topic_defaults or {}
    )[key]
    context = RequestContext(listener, "a-client", "127.0.0.1", 1, version)
    return decoded(key, version, await handler(context, request))


def decoded(key: ApiKey, version: int, response: Body | EncodedBody) -> Body:
    """Decode a handler's answer from Kafka's encoding."""
    name = key.message + "Response"
    if isinstance(response, EncodedBody):
        return codec.decode(name, version, b"".join(response.pieces))
    return codec.decode(name, version, codec.encode(name, version, response))


async def active_with_topic(
    name: str, assignment: Mapping[int, Replicas], *brokers: Broker, **settings: Any
) -> FakeActive:
    """Create an active controller with one topic; every replica is in sync."""
    active = active_with(*brokers, **settings)
    await add_topic(active, name, assignment)
    return active


async def add_topic(active: FakeActive, name: str, assignment: Mapping[int, Replicas]) -> None:
    """Create a topic with the given assignment."""
    given = [{"partition_index": number, "broker_ids": list(ids)} for number, ids in assignment.items()]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": given}
    response = await call(active, ApiKey.CREATE_TOPICS, {"topics": [topic]})
    assert response["topics"][0]["error_code"] == 0, response
    active.submitted.clear()
    active.waits_ms.clear()


def only(body: Body, *path: str) -> Body:
    """Follow a path of arrays that have one element each."""
    for name in path:
        (body,) = body[name]
    return body


def pick(body: Body, *names: str) -> Body:
    """Return some fields."""
    return {name: body[name] for name in names}
