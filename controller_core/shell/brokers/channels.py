"""Channels to all live brokers: opened and closed with the brokers' registrations, filled with the requests that the core decides on."""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable

from controller_core.model import Broker, Cluster, Endpoint, TopicPartition, zookeeper_events
from controller_core.model.decision import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.shell.brokers import answers, requests
from controller_core.shell.brokers.channel import Channel, Request
from controller_core.shell.mode import Mode
from controller_core.shell.pace import Pace
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire import ApiKey, Body
from kafka_wire.net.client import Node, NodeSettings

log = logging.getLogger(__name__)

MAX_REFUSALS = 5
"""Refusals after which an UpdateMetadata request is skipped: the requests queued behind it may succeed."""


class Channels:
    """The channels of one active term."""

    def __init__(
        self,
        cluster: Cluster,
        own: requests.OwnAddress,
        *,
        mode: Mode,
        answered: Callable[[zookeeper_events.StopReplicaAnswered | zookeeper_events.LeaderAndIsrAnswered], None],
        refused: Callable[[answers.Retry], None],
        deposed: Callable[[], None],
        pace: Pace,
        security: BrokerSecurity = UNPROTECTED,
    ) -> None:
        self._cluster = cluster
        self._mode = mode
        self._pace = pace
        self._own = own
        self._answered = answered
        self._refused = refused
        self._deposed = deposed
        self._refused_partitions = answers.RefusedPartitions()
        self._settings = NodeSettings(client_id=f"steward-controller-{cluster.controller_id}")
        self._security = security
        self._channels: dict[int, tuple[Broker, Channel]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self) -> None:
        """Open channels to brokers that registered, and close those of brokers that left or have another broker epoch."""
        for broker_id, (broker, channel) in list(self._channels.items()):
            now = self._cluster.brokers.get(broker_id)
            if now is None or now.epoch != broker.epoch:
                self._drop(broker_id)
            elif self._endpoint(now) != self._endpoint(broker):
                self._move(now, channel)
        for broker in self._cluster.brokers.values():
            if broker.id not in self._channels:
                self._open(broker)

    async def send(self, sends: Iterable[Send]) -> None:
        """Queue requests, built from the cluster's current state; the caller's event has exclusive access to the partitions concerned."""
        for send in sends:
            async with self._pace.step(_partitions(send)):
                self._queue(send)

    def _queue(self, send: Send) -> None:
        match send:
            case SendLeaderAndIsr():
                body = requests.leader_and_isr(self._cluster, send, self._own)
                self._put(send.broker, ApiKey.LEADER_AND_ISR, body)
            case SendMetadata():
                body = requests.update_metadata(self._cluster, send, self._own)
                for broker in send.brokers:
                    self._put(broker, ApiKey.UPDATE_METADATA, body)
            case SendStopReplica():
                self._put(send.broker, ApiKey.STOP_REPLICA, requests.stop_replica(self._cluster, send))

    async def idle(self, timeout_ms: int, silence_ms: int | None = None) -> bool:
        """Wait until every broker has answered all requests queued so far; False on timeout.

        A broker that leaves one request unanswered for `silence_ms` counts as a timeout (None: only `timeout_ms` applies).
        """
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        silence_s = math.inf if silence_ms is None else silence_ms / 1000
        waits = [channel.settled(channel.waiting, deadline, silence_s) for _, channel in self._channels.values()]
        return all(await asyncio.gather(*waits))

    def queued(self) -> dict[int, int]:
        """Return the number of queued requests by broker."""
        return {broker_id: channel.queued for broker_id, (_, channel) in self._channels.items()}

    async def close(self) -> None:
        """Close all channels and drop their requests."""
        for broker_id in list(self._channels):
            self._drop(broker_id)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _endpoint(self, broker: Broker) -> Endpoint | None:
        return broker.endpoint(self._own.inter_broker_listener)

    def _open(self, broker: Broker, waiting: Iterable[Request] = ()) -> None:
        endpoint = self._endpoint(broker)
        if endpoint is None:
            # A channel needs an address. `zookeeper.reading.brokers_read` lists such brokers as unreachable.
            return
        settings = self._security.settings(self._settings, endpoint.security_protocol)
        node = Node(endpoint.host, endpoint.port, settings)
        self._channels[broker.id] = (broker, Channel(broker.id, node, self._on_answer, self._pace, waiting))

    def _move(self, broker: Broker, channel: Channel) -> None:
        """Continue with another address: the same incarnation of a broker does not get the full state again."""
        waiting = channel.detach() if self._endpoint(broker) is not None else ()
        self._drop(broker.id)
        if waiting:
            self._open(broker, waiting)

    def _drop(self, broker_id: int) -> None:
        _, channel = self._channels.pop(broker_id)
        self._refused_partitions.forget(broker_id)
        task = asyncio.create_task(channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _put(self, broker_id: int, key: ApiKey, body: Body | requests.StatesBody) -> None:
        entry = self._channels.get(broker_id)
        if entry is None:
            return
        broker, channel = entry
        if channel.is_full:
            self._replace_with_full_state(broker, channel)
        channel.put(key, self._body(broker, body))

    def _replace_with_full_state(self, broker: Broker, channel: Channel) -> None:
        """Replace the queued requests by the current state; requests about deleted topics are kept, since it does not contain these."""
        log.warning(
            "Broker request queue full; replacing queued requests with a full state update", extra={"broker": broker.id}
        )
        channel.keep_only(lambda request: not requests.is_covered_by_full_update(request.body))
        metadata = self._mode.full_metadata_request(self._cluster, (broker.id,))
        channel.put(
            ApiKey.UPDATE_METADATA, self._body(broker, requests.update_metadata(self._cluster, metadata, self._own))
        )
        for hosted in self._mode.leader_and_isr_requests(self._cluster, (broker.id,), metadata.rows):
            channel.put(
                ApiKey.LEADER_AND_ISR, self._body(broker, requests.leader_and_isr(self._cluster, hosted, self._own))
            )

    @staticmethod
    def _body(broker: Broker, body: Body | requests.StatesBody) -> Body | requests.StatesBody:
        return (
            body.to(broker.epoch) if isinstance(body, requests.StatesBody) else {**body, "broker_epoch": broker.epoch}
        )

    def _on_answer(self, request: Request, answer: Body, refusals: int) -> bool:
        """Process an answer; True: the request is to be sent again."""
        result = answers.interpret_answer(request.broker, request.key, request.body, answer)
        context = {"broker": request.broker, "api": request.key.name}
        is_first = refusals == 0
        match result.status:
            case answers.AnswerStatus.ACCEPTED:
                self._on_accepted(request, answer, result)
            case answers.AnswerStatus.STALE_CONTROLLER:
                log.warning("Broker knows a newer controller", extra=context)
                self._deposed()
            case answers.AnswerStatus.STALE_BROKER:
                log.warning(
                    "Broker has registered again; dropping requests for its previous incarnation", extra=context
                )
                self._drop_waiting(request.broker)
            case answers.AnswerStatus.UNAUTHORIZED:
                if is_first:
                    log.error(
                        "Broker denied the request; grant ClusterAction on the Cluster resource to the controller's principal",
                        extra=context,
                    )
                return True
            case _:
                if is_first:
                    extra = {**context, "error": answers.error_name(answer["error_code"])}
                    log.warning("Broker refused a request", extra=extra)
                if result.status is answers.AnswerStatus.FAILED and self._is_sent_again(request, refusals):
                    return True
        if result.event is not None:
            self._answered(result.event)
        return False

    def _drop_waiting(self, broker_id: int) -> None:
        """Drop requests for a broker's previous incarnation: each would be refused, and the new one gets the full state."""
        entry = self._channels.get(broker_id)
        if entry is not None:
            entry[1].keep_only(lambda _: False)

    def _on_accepted(self, request: Request, answer: Body, result: answers.Interpretation) -> None:
        if request.key is not ApiKey.LEADER_AND_ISR or not isinstance(request.body, requests.StatesBody):
            return
        if self._refused_partitions.has_any(request.broker):
            self._refused_partitions.accepted(request.broker, request.body.leader_epochs)
        for partition, error in result.failed:
            if not self._is_known_offline(request.broker, partition):
                extra = {"broker": request.broker, "topic": partition.topic, "partition": partition.partition}
                log.warning(
                    "Broker could not become leader or follower of a partition", extra={**extra, "error": error}
                )
        replicas = answers.replicas_answered(request.broker, request.body, answer, self._cluster, result.failed)
        if replicas is not None:
            self._answered(replicas)

    def _is_known_offline(self, broker: int, partition: TopicPartition) -> bool:
        """Return whether a broker is known not to host a partition: its log directory failed, or it refused the partition before."""
        cluster = self._cluster
        row = cluster.row_of(*partition) if cluster.offline_replicas or cluster.refused_replicas else None
        return row is not None and (broker in cluster.offline_at(row) or broker in cluster.refused_at(row))

    def _is_sent_again(self, request: Request, refusals: int) -> bool:
        """Return whether a refused request is repeated as it is. Partitions are sent in new requests, under a higher leader epoch."""
        if request.key is ApiKey.LEADER_AND_ISR and isinstance(request.body, requests.StatesBody):
            for retry in self._refused_partitions.retries(request.broker, request.body.leader_epochs):
                self._refused(retry)
        return request.key is ApiKey.UPDATE_METADATA and refusals < MAX_REFUSALS


def _partitions(send: Send) -> int:
    return len(send.partitions if isinstance(send, SendStopReplica) else send.rows)
