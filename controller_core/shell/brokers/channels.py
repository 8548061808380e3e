"""All brokers' channels: opened and closed with their registrations, filled from what the core wants to be sent.

Leaves out what to send (the core), and how a connection is kept (kafka_wire.net).
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable

from controller_core.model import events
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.model.ids import TopicPartition
from controller_core.model.sends import Send, SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.shell.brokers import answers, requests
from controller_core.shell.brokers.channel import Channel, Request
from controller_core.shell.mode import Mode
from controller_core.shell.pace import Pace
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.net.node import Node, NodeSettings

log = logging.getLogger(__name__)

GRANT = "ClusterAction on the Cluster resource"
MAX_REFUSALS = 5
"""Times that a broker may throw at an UpdateMetadata before it is passed over: behind it wait others, which may do."""


class Channels:
    """The channels of one tenure."""

    def __init__(
        self,
        cluster: Cluster,
        own: requests.OwnAddress,
        *,
        mode: Mode,
        answered: Callable[[events.StopReplicaAnswered | events.LeaderAndIsrAnswered], None],
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
        self._refusals = answers.Refusals()
        self._settings = NodeSettings(client_id=f"steward-controller-{cluster.controller_id}")
        self._security = security
        self._channels: dict[int, tuple[Broker, Channel]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self) -> None:
        """Open channels to brokers that came, and close those of brokers that left or live anew."""
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
        """Queue requests, built from the cluster as it is now; the caller has the turn of all that they are about."""
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
        """Wait until every broker answered what it was sent so far; False when the time is up first.

        A broker that leaves one request unanswered for `silence_ms` is not waited for (None: it is).
        """
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        silence_s = math.inf if silence_ms is None else silence_ms / 1000
        waits = [channel.settled(channel.waiting, deadline, silence_s) for _, channel in self._channels.values()]
        return all(await asyncio.gather(*waits))

    def queued(self) -> dict[int, int]:
        """Count the requests that wait, by broker."""
        return {broker_id: channel.queued for broker_id, (_, channel) in self._channels.items()}

    async def close(self) -> None:
        """Drop all that waits."""
        for broker_id in list(self._channels):
            self._drop(broker_id)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _endpoint(self, broker: Broker) -> Endpoint | None:
        return broker.endpoint(self._own.inter_broker_listener)

    def _open(self, broker: Broker, waiting: Iterable[Request] = ()) -> None:
        endpoint = self._endpoint(broker)
        if endpoint is None:
            # The readers leave such brokers out (`reading.brokers_read`); a channel needs an address.
            return
        settings = self._security.settings(self._settings, endpoint.security_protocol)
        node = Node(endpoint.host, endpoint.port, settings)
        self._channels[broker.id] = (broker, Channel(broker.id, node, self._on_answer, self._pace, waiting))

    def _move(self, broker: Broker, channel: Channel) -> None:
        """Go on under another address: the same life of a broker is not told again what waits for it."""
        waiting = channel.detach() if self._endpoint(broker) is not None else ()
        self._drop(broker.id)
        if waiting:
            self._open(broker, waiting)

    def _drop(self, broker_id: int) -> None:
        _, channel = self._channels.pop(broker_id)
        self._refusals.forget(broker_id)
        task = asyncio.create_task(channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _put(self, broker_id: int, key: ApiKey, body: Body | requests.StatesBody) -> None:
        entry = self._channels.get(broker_id)
        if entry is None:
            return
        broker, channel = entry
        if channel.is_full:
            self._tell_anew(broker, channel)
        channel.put(key, self._body(broker, body))

    def _tell_anew(self, broker: Broker, channel: Channel) -> None:
        """Replace what waits by the present state; what speaks of topics that are no more is kept: nothing else says it."""
        log.warning("a broker lags too far behind and is told everything anew", extra={"broker": broker.id})
        channel.keep_only(lambda request: not requests.is_told_anew(request.body))
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
        """Take in an answer; True: the request is to be sent again."""
        meaning = answers.meaning_of(request.broker, request.key, request.body, answer)
        context = {"broker": request.broker, "api": request.key.name}
        is_first = refusals == 0
        match meaning.verdict:
            case answers.Verdict.TAKEN:
                self._on_taken(request, answer, meaning)
            case answers.Verdict.STALE_CONTROLLER:
                log.warning("a broker has heard of a newer controller", extra=context)
                self._deposed()
            case answers.Verdict.STALE_BROKER:
                log.warning("a broker has registered anew: what waits for its former life is dropped", extra=context)
                self._drop_waiting(request.broker)
            case answers.Verdict.UNAUTHORIZED:
                if is_first:
                    log.error("a broker does not let the controller in: grant its principal %s", GRANT, extra=context)
                return True
            case _:
                if is_first:
                    extra = {**context, "error": answers.error_name(answer["error_code"])}
                    log.warning("a broker refused a request", extra=extra)
                if meaning.verdict is answers.Verdict.FAILED and self._is_sent_again(request, refusals):
                    return True
        if meaning.event is not None:
            self._answered(meaning.event)
        return False

    def _drop_waiting(self, broker_id: int) -> None:
        """Drop what waits for a former life of a broker: it would be refused one by one, and the new life is told everything."""
        entry = self._channels.get(broker_id)
        if entry is not None:
            entry[1].keep_only(lambda _: False)

    def _on_taken(self, request: Request, answer: Body, meaning: answers.Meaning) -> None:
        if request.key is not ApiKey.LEADER_AND_ISR or not isinstance(request.body, requests.StatesBody):
            return
        if self._refusals.remember(request.broker):
            self._refusals.taken(request.broker, request.body.leader_epochs)
        for partition, error in meaning.failed:
            if not self._is_known_offline(request.broker, partition):
                extra = {"broker": request.broker, "topic": partition.topic, "partition": partition.partition}
                log.warning("a broker could not take on a partition", extra={**extra, "error": error})
        replicas = answers.replicas_answered(request.broker, request.body, answer, self._cluster, meaning.failed)
        if replicas is not None:
            self._answered(replicas)

    def _is_known_offline(self, broker: int, partition: TopicPartition) -> bool:
        """Whether it is known that a broker cannot take a partition on: its log directory failed, or it refused before."""
        cluster = self._cluster
        row = cluster.row_of(*partition) if cluster.offline_replicas or cluster.refused_replicas else None
        return row is not None and (broker in cluster.offline_at(row) or broker in cluster.refused_at(row))

    def _is_sent_again(self, request: Request, refusals: int) -> bool:
        """Whether what threw at a broker may be told as it is. Partitions are told anew, under a higher leader epoch."""
        if request.key is ApiKey.LEADER_AND_ISR and isinstance(request.body, requests.StatesBody):
            for retry in self._refusals.refused(request.broker, request.body.leader_epochs):
                self._refused(retry)
        return request.key is ApiKey.UPDATE_METADATA and refusals < MAX_REFUSALS


def _partitions(send: Send) -> int:
    return len(send.partitions if isinstance(send, SendStopReplica) else send.rows)
