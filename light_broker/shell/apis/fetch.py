"""Fetch: records for consumers and followers, with sessions (KIP-227). Source: KafkaApis.handleFetchRequest."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.fetch_sessions import (
    NO_SESSION,
    OpenedFetch,
    SessionKey,
    changed_results,
    next_epoch,
)
from light_broker.core.read_replica import RACK_AWARE
from light_broker.core.replica_requests import (
    FetchParams,
    FetchPartition,
    IsolationLevel,
    ReadLimit,
    ReadResult,
)
from light_broker.shell.apis.current_leader import CurrentLeaders
from light_broker.shell.broker import Broker

VERSIONS = (4, 18)

REPLICA_STATE_FROM = 15
"""Version from which on a follower sends its id with its broker epoch (KIP-903)."""
TOPIC_IDS_FROM = 13
LEADERS_FROM = 16
FOLLOWERS_FROM = 11
"""Version from which on a consumer may read from a follower (KIP-392)."""
STORAGE_ERROR_FROM = 6
"""Version from which on a client knows KAFKA_STORAGE_ERROR."""
LEADER_ERRORS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
NO_REPLICA = -1


@dataclass(frozen=True, slots=True)
class _Call:
    """A request with its origin."""

    broker: Broker
    context: RequestContext
    body: Body

    @property
    def version(self) -> int:
        """Version of the request."""
        return self.context.api_version

    @property
    def uses_topic_ids(self) -> bool:
        """Whether topics are named by their ids."""
        return self.version >= TOPIC_IDS_FROM

    @property
    def replica_id(self) -> int:
        """Broker id of a follower, negative for a consumer."""
        replica_id: int = (
            self.body["replica_state"]["replica_id"] if self.version >= REPLICA_STATE_FROM else self.body["replica_id"]
        )
        return replica_id

    @property
    def is_from_follower(self) -> bool:
        """Whether a broker sent it."""
        return self.replica_id >= 0


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return records of the partitions in the request or its session."""
    call = _Call(broker, context, body)
    opened = broker.fetch_sessions.open(
        session_id=body["session_id"],
        epoch=body["session_epoch"],
        uses_topic_ids=call.uses_topic_ids,
        partitions=_requested(body["topics"], uses_topic_ids=call.uses_topic_ids),
        forgotten=_forgotten(body["forgotten_topics_data"], uses_topic_ids=call.uses_topic_ids),
        now_ms=broker.replicas.now_ms(),
    )
    if opened.error is not ErrorCode.NONE:
        return {"error_code": opened.error, "session_id": NO_SESSION, "responses": []}
    names, results = _resolve(call, opened)
    wanted = {named: opened.partitions[key] for key, named in names.items() if key not in results}
    if wanted:
        read = await broker.replicas.reads.fetch(_params(call), wanted)
        results = {key: results[key] if key in results else read[names[key]] for key in opened.partitions}
    return _response(call, opened, names, results)


def _requested(topics: Iterable[Body], *, uses_topic_ids: bool) -> dict[SessionKey, FetchPartition]:
    return {
        SessionKey(topic["topic_id"] if uses_topic_ids else topic["topic"], partition["partition"]): FetchPartition(
            topic["topic_id"] if uses_topic_ids else NO_TOPIC_ID,
            partition["fetch_offset"],
            partition["partition_max_bytes"],
            partition["log_start_offset"],
            partition["current_leader_epoch"],
            partition["last_fetched_epoch"],
        )
        for topic in topics
        for partition in topic["partitions"]
    }


def _forgotten(topics: Iterable[Body], *, uses_topic_ids: bool) -> list[SessionKey]:
    return [
        SessionKey(topic["topic_id"] if uses_topic_ids else topic["topic"], partition)
        for topic in topics
        for partition in topic["partitions"]
    ]


def _resolve(call: _Call, opened: OpenedFetch) -> tuple[dict[SessionKey, TopicPartition], dict[SessionKey, ReadResult]]:
    """Return the names of the partitions, and the results of those that are refused."""
    may, view = call.broker.may(call.context), call.broker.view
    is_broker = call.is_from_follower and may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    allowed: dict[str, bool] = {}
    names: dict[SessionKey, TopicPartition] = {}
    refused: dict[SessionKey, ReadResult] = {}
    for key in opened.partitions:
        topic = view.topic_name(key.topic) if isinstance(key.topic, UUID) else key.topic
        names[key] = TopicPartition(topic or "", key.partition)
        if call.is_from_follower and not is_broker:
            refused[key] = ReadResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted=())
            continue
        if topic is None:
            refused[key] = ReadResult(ErrorCode.UNKNOWN_TOPIC_ID, aborted=())
            continue
        if topic not in allowed:
            allowed[topic] = is_broker or may(Operation.READ, ResourceType.TOPIC, topic)
        if not allowed[topic]:
            refused[key] = ReadResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted=())
        elif view.partition(names[key]) is None:
            refused[key] = ReadResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, aborted=())
    return names, refused


def _params(call: _Call) -> FetchParams:
    body = call.body
    if call.is_from_follower:
        limit = ReadLimit.LOG_END
    elif body["isolation_level"] == IsolationLevel.READ_COMMITTED:
        limit = ReadLimit.LAST_STABLE_OFFSET
    else:
        limit = ReadLimit.HIGH_WATERMARK
    max_bytes = min(body["max_bytes"], call.broker.settings.number("fetch.max.bytes"))
    return FetchParams(
        replica_id=call.replica_id,
        replica_epoch=body["replica_state"]["replica_epoch"] if call.version >= REPLICA_STATE_FROM else -1,
        max_wait_ms=body["max_wait_ms"],
        min_bytes=min(body["min_bytes"], max_bytes),
        max_bytes=max_bytes,
        limit=limit,
        reads_from_followers=call.version >= FOLLOWERS_FROM,
        rack=body["rack_id"],
        racks=_racks(call),
    )


def _racks(call: _Call) -> Mapping[int, str | None]:
    """Return the racks of the brokers that a consumer with a rack may be sent to; none without RackAwareReplicaSelector."""
    broker = call.broker
    if call.is_from_follower or call.version < FOLLOWERS_FROM or not call.body["rack_id"]:
        return {}
    if broker.settings.text("replica.selector.class") != RACK_AWARE:
        return {}
    return {alive_broker.id: alive_broker.rack for alive_broker in broker.view.alive_brokers(call.context.listener)}


def _response(
    call: _Call,
    opened: OpenedFetch,
    names: Mapping[SessionKey, TopicPartition],
    results: Mapping[SessionKey, ReadResult],
) -> Body:
    session_id = NO_SESSION
    if opened.session is not None:
        # A later request of the session may have overtaken this one, whose news would then be lost.
        if opened.session.epoch != next_epoch(call.body["session_epoch"]):
            return {"error_code": ErrorCode.INVALID_FETCH_SESSION_EPOCH, "session_id": NO_SESSION, "responses": []}
        session_id = opened.session.id
        results = changed_results(opened.session, results)
    elif opened.wants_session:
        session_id = call.broker.fetch_sessions.create(
            secrets.randbelow(2**31 - 1) + 1,
            uses_topic_ids=call.uses_topic_ids,
            is_privileged=call.is_from_follower,
            partitions=opened.partitions,
            results=results,
            now_ms=call.broker.replicas.now_ms(),
        )
    leaders = CurrentLeaders(call.broker, call.context)
    topics: dict[str | UUID, list[Body]] = {}
    for key, result in results.items():
        answer = _answer(key.partition, result, call.version)
        if result.error in LEADER_ERRORS and call.version >= LEADERS_FROM:
            answer["current_leader"] = leaders.of(names[key])
        topics.setdefault(key.topic, []).append(answer)
    topic_field = "topic_id" if call.uses_topic_ids else "topic"
    response: Body = {
        "session_id": session_id,
        "responses": [{topic_field: topic, "partitions": answers} for topic, answers in topics.items()],
    }
    if leaders.endpoints:
        response["node_endpoints"] = leaders.endpoints
    return response


def _answer(index: int, result: ReadResult, version: int) -> Body:
    error = result.error
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version < STORAGE_ERROR_FROM:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer: Body = {
        "partition_index": index,
        "error_code": error,
        "high_watermark": result.high_watermark,
        "last_stable_offset": result.last_stable_offset,
        "log_start_offset": result.log_start_offset,
        "aborted_transactions": None
        if result.aborted is None
        else [
            {"producer_id": transaction.producer_id, "first_offset": transaction.first_offset}
            for transaction in result.aborted
        ],
        "records": result.records,
    }
    if version >= FOLLOWERS_FROM:
        answer["preferred_read_replica"] = result.preferred_read_replica
    if result.diverging is not None:
        answer["diverging_epoch"] = {
            "epoch": result.diverging.epoch,
            "end_offset": result.diverging.start_offset,
        }
    return answer
