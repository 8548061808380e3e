"""One listener of the controller: what comes in by it, and who answers.

Left out: what the controller's own requests do (their handlers), who is let in (kafka_wire.net).
"""

import logging
from collections.abc import Callable, Container, Mapping
from functools import partial

from controller_core.shell.front import request_limits
from controller_core.shell.front.broker_versions import SharedVersions
from controller_core.shell.front.handler import OwnHandler, RelayInstead
from controller_core.shell.front.relay import DEFAULT_LIMITS, Relay, RelayLimits
from controller_core.shell.front.route import LiveBrokers
from controller_core.shell.front.sliced_answers import AnswerError, SlicedAnswers
from kafka_node import versions
from kafka_node.acks import has_response
from kafka_node.authorization.guard import Guard
from kafka_node.authorization.refusal import refusal, refuses_at_top
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_node.security.listeners import NOTHING, Demands
from kafka_wire import codec, schema
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body, CodecError, RequestHeader
from kafka_wire.encoded_body import EncodedBody, Response, framed
from kafka_wire.errors import ErrorCode
from kafka_wire.net.buffers import Buffers
from kafka_wire.net.outflow import never
from kafka_wire.net.sasl_server import AUTHENTICATE_VERSIONS, HANDSHAKE_VERSIONS
from kafka_wire.net.server import CloseConnection, MalformedRequest, Peer, Server, ServerLimits, serve

_log = logging.getLogger(__name__)

CLIENT_ID = "steward-front"  # in brokers' request logs, for what the front asks on its own account

DEFAULT_SERVER_LIMITS = ServerLimits()
SASL_VERSIONS = {ApiKey.SASL_HANDSHAKE: HANDSHAKE_VERSIONS, ApiKey.SASL_AUTHENTICATE: AUTHENTICATE_VERSIONS}
"""What the gate of a SASL listener answers, before the front."""
_KNOWN_KEYS = frozenset(map(int, ApiKey))


class Front:
    """The front of one listener: `handle` is its server's handler. Made and started by `open_front`."""

    def __init__(
        self,
        listener: str,
        handlers: Mapping[ApiKey, OwnHandler],
        live_brokers: LiveBrokers | None,
        *,
        served: Mapping[ApiKey, versions.VersionRange],
        not_advertised: Container[ApiKey] = (),
        relay_limits: RelayLimits = DEFAULT_LIMITS,
        security: BrokerSecurity = UNPROTECTED,
        guard: Guard | None = None,
    ) -> None:
        if ApiKey.API_VERSIONS in handlers or not handlers.keys() <= served.keys():
            raise ValueError("handlers are for requests with versions in the table, and ApiVersions is the front's own")
        self.listener = listener
        self._handlers = dict(handlers)
        self._guard = guard
        self._own = {key: (served[key][0], served[key][1]) for key in [ApiKey.API_VERSIONS, *handlers]}
        self.relay: Relay | None = None
        self._shared_versions: SharedVersions | None = None
        if live_brokers is not None:
            self.relay = Relay(live_brokers, limits=relay_limits, security=security)
            self._shared_versions = SharedVersions(live_brokers, client_id=CLIENT_ID, security=security)
        self._offered = {key: at for key, at in self._own.items() if key not in not_advertised}
        self._server: Server | None = None
        self._sliced = {False: SlicedAnswers(), True: SlicedAnswers()}
        """By whether brokers send the API: their requests must not wait for the slices of clients."""

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server is not None
        return self._server.port

    async def listen(
        self,
        host: str,
        port: int,
        limits: ServerLimits,
        demands: Demands = NOTHING,
        is_urgent: Callable[[], bool] = never,
        buffers: Buffers | None = None,
    ) -> None:
        """Take connections on `host`:`port`; OSError when the address cannot be had."""
        schema.names()  # reads the tables now: the first request would hold the event loop for it
        self._offered = self._offered | (SASL_VERSIONS if demands.sasl is not None else {})
        self._server = await serve(
            self.handle,
            host,
            port,
            limits=limits,
            ssl=demands.tls,
            sasl=demands.sasl,
            principal_rules=demands.principal_rules,
            is_urgent=is_urgent,
            request_limit=self.request_bytes,
            buffers=buffers,
        )

    def request_bytes(self, key: int, _version: int) -> int:
        """Return the largest frame that an API's requests may have here."""
        if key in self._own:
            return request_limits.own_bytes(ApiKey(key))
        if self.relay is None or key in versions.BETWEEN_SERVERS:
            return request_limits.SMALL_BYTES
        if key not in _KNOWN_KEYS and key not in self._relayed_ranges():
            return request_limits.SMALL_BYTES
        return request_limits.relayed_bytes(key)

    async def close(self, grace_ms: int | None = None) -> None:
        """Take no more connections, let requests under way end within the grace, then end every connection."""
        if self._server is not None:
            await self._server.close(grace_ms)
        if self.relay is not None:
            await self.relay.close()

    def broker_gone(self, broker_id: int) -> None:
        """End the relayed connections to a broker that is no longer live."""
        if self.relay is not None:
            self.relay.broker_gone(broker_id)

    def _relayed_ranges(self) -> Mapping[int, versions.VersionRange]:
        return {} if self._shared_versions is None else self._shared_versions.latest.ranges

    async def handle(self, peer: Peer, frame: bytes) -> Response | None:
        """Answer one request frame, or have a broker answer it (a server's Handler)."""
        try:
            header = codec.peek_header(frame)
            if header.api_key == ApiKey.API_VERSIONS:
                return await self._api_versions(header, frame)
            if header.api_key in self._own:
                return await self._own_request(ApiKey(header.api_key), peer, header, frame)
            self._check_relayable(header)
            if self._guard is not None:
                refused = await self._refused(self._guard, self._context(peer, header), header, frame)
                if refused is not None:
                    return refused
            return await self._relay(peer, header, frame)
        except CodecError as why:
            raise MalformedRequest(str(why)) from why

    async def _relay(self, peer: Peer, header: RequestHeader, frame: bytes) -> bytes | None:
        if self.relay is None:
            raise CloseConnection(f"api key {header.api_key} is not served here")
        return await self.relay.forward(peer, header, frame)

    async def _api_versions(self, header: RequestHeader, frame: bytes) -> bytes:
        version = header.api_version
        lowest, highest = self._own[ApiKey.API_VERSIONS]
        body: Body
        if not lowest <= version <= highest:
            version, body = 0, versions.unsupported_version_body((lowest, highest))
        elif not versions.names_its_software_well(
            codec.decode_bounded(frame, header, request_limits.OWN_UNITS), version
        ):
            body = {"error_code": ErrorCode.INVALID_REQUEST}
        else:
            shared = versions.NO_BROKER if self._shared_versions is None else await self._shared_versions.shared()
            body = versions.api_versions_body(self._offered, shared, version)
        return codec.encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, body)

    async def _own_request(self, key: ApiKey, peer: Peer, header: RequestHeader, frame: bytes) -> Response | None:
        lowest, highest = self._own[key]
        if not lowest <= header.api_version <= highest:
            return _unsupported_version(key, header)
        context = self._context(peer, header)
        if self._guard is not None and (failure := await self._guard.refuse_by_header(key, context)) is not None:
            return await self._refused_by_header(key, header, frame, failure)
        answer = partial(self._judged_answer, key, peer, header)
        try:
            if key in request_limits.SLICED:
                return await self._sliced[request_limits.SLICED[key].is_from_brokers].answer(key, header, frame, answer)
            body = await answer(codec.decode_bounded(frame, header, request_limits.own_units(key)), is_slice=False)
        except RelayInstead:
            return await self._relay(peer, header, frame)
        except AnswerError as why:
            raise self._failed(key, peer, header, why) from why
        if isinstance(body, EncodedBody):
            return framed(codec.response_header(key, header.api_version, header.correlation_id), body)
        try:
            return codec.encode_response(key, header.api_version, header.correlation_id, body)
        except CodecError as why:  # The answer cannot be written: a defect of its handler, not of the request.
            raise self._failed(key, peer, header, why) from why

    async def _judged_answer(
        self, key: ApiKey, peer: Peer, header: RequestHeader, body: Body, *, is_slice: bool
    ) -> Body | EncodedBody:
        """Have a request, or a slice of it, answered by its handler, or refused by the authorizer.

        A request is relayed as a whole and under the controller's own name, so an authorizer must have judged all of it. Where only
        a slice was judged, no topic is created automatically, and what cannot be answered here ends the connection.
        """
        context = self._context(peer, header)
        is_judged_in_part = is_slice and self._guard is not None
        if is_judged_in_part and body.get("allow_auto_topic_creation"):
            body = {**body, "allow_auto_topic_creation": False}
        try:
            if self._guard is not None and (refused := await self._guard.refuse(key, context, body)) is not None:
                return refused
            return await self._handlers[key](context, body)
        except RelayInstead:
            if is_judged_in_part:
                raise CloseConnection(
                    f"its {key.name} request is too large to be judged and relayed as a whole"
                ) from None
            raise
        except CloseConnection:
            raise
        except Exception as why:
            raise self._failed(key, peer, header, why) from why

    @staticmethod
    async def _refused_by_header(key: ApiKey, header: RequestHeader, frame: bytes, failure: Failure) -> bytes:
        """Refuse a request whose body was not decoded; it is decoded now only if the response repeats its elements."""
        version = header.api_version
        if refuses_at_top(key, version):
            body = refusal(key, version, {}, failure)
        else:
            body = refusal(key, version, codec.decode_bounded(frame, header, request_limits.JUDGED_UNITS), failure)
        return codec.encode_response(key, version, header.correlation_id, body)

    def _context(self, peer: Peer, header: RequestHeader) -> RequestContext:
        return RequestContext(
            listener=self.listener,
            client_id=header.client_id,
            peer_host=peer.host,
            correlation_id=header.correlation_id,
            api_version=header.api_version,
            principal=peer.principal,
        )

    @staticmethod
    async def _refused(guard: Guard, context: RequestContext, header: RequestHeader, frame: bytes) -> bytes | None:
        """Refuse a request that its caller may not have passed on; None: it may go on. Raises CloseConnection."""
        if header.api_key not in _KNOWN_KEYS:
            raise CloseConnection(f"nobody can tell what api key {header.api_key} needs")
        key = ApiKey(header.api_key)
        if (failure := await guard.refuse_by_header(key, context)) is not None:
            return await Front._refused_by_header(key, header, frame, failure)
        body = await guard.refuse(key, context, codec.decode_bounded(frame, header, request_limits.JUDGED_UNITS))
        if body is None:
            return None
        if not has_response(header, frame):
            raise CloseConnection(f"its {key.name} request is refused")
        return codec.encode_response(key, header.api_version, header.correlation_id, body)

    @staticmethod
    def _failed(key: ApiKey, peer: Peer, header: RequestHeader, why: Exception) -> CloseConnection:
        """Write a defect down once; the connection it met is closed, and the process goes on."""
        extra = {"api_key": key.name, "api_version": header.api_version, "peer": str(peer)}
        words = "UNKNOWN_SERVER_ERROR: %s version %d failed"
        _log.error(words, key.name, header.api_version, exc_info=why, extra=extra)
        return CloseConnection(f"its {key.name} request could not be handled")

    def _check_relayable(self, header: RequestHeader) -> None:
        """Keep away from brokers what no client has reason to send; raises CloseConnection."""
        key, version = header.api_key, header.api_version
        if self.relay is None:
            # As Kafka's controller does with an API that its listener has not enabled (SocketServer.processCompletedReceives).
            raise CloseConnection(f"api key {key} is not served here")
        if key in versions.BETWEEN_SERVERS:
            raise CloseConnection(f"{ApiKey(key).name} is a request between servers and is not relayed")
        shared = self._relayed_ranges().get(key)
        if shared is not None and not shared[0] <= version <= shared[1]:
            raise CloseConnection(f"not every live broker serves version {version} of api key {key}")
        if shared is None and key not in _KNOWN_KEYS:
            raise MalformedRequest(f"there is no api key {key}")


def _unsupported_version(key: ApiKey, header: RequestHeader) -> bytes:
    """Answer UNSUPPORTED_VERSION where the response has a place for it; else close the connection, as Kafka always does.

    A client that asked ApiVersions never comes here.
    """
    try:
        body = {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        return codec.encode_response(key, header.api_version, header.correlation_id, body)
    except CodecError:
        raise CloseConnection(f"{key.name} version {header.api_version} is not supported here") from None


async def open_front(
    listener: str,
    host: str,
    port: int,
    handlers: Mapping[ApiKey, OwnHandler],
    live_brokers: LiveBrokers | None,
    *,
    served: Mapping[ApiKey, versions.VersionRange],
    not_advertised: Container[ApiKey] = (),
    limits: ServerLimits = DEFAULT_SERVER_LIMITS,
    relay_limits: RelayLimits = DEFAULT_LIMITS,
    demands: Demands = NOTHING,
    security: BrokerSecurity = UNPROTECTED,
    guard: Guard | None = None,
    is_urgent: Callable[[], bool] = never,
    buffers: Buffers | None = None,
) -> Front:
    """Listen on `host`:`port` (0: any free port) as the controller's `listener`.

    `handlers` answer the controller's own requests, in the versions of `served`; those of `not_advertised` are answered without being
    listed in ApiVersions. `live_brokers` returns the endpoints of live brokers on the same listener, to which all other requests are
    relayed; None: there is no relay, and connections with other requests are closed. `demands` are made on clients, `security` is for the way to brokers.
    `guard` judges every request before it is answered or passed on; without one nobody is refused. `is_urgent` reports whether
    the controller has events to process, which go before the writing of long responses. `buffers` are shared by the listeners of
    a process; without them the listener has its own. Raises OSError when the address cannot be had.
    """
    front = Front(
        listener,
        handlers,
        live_brokers,
        served=served,
        not_advertised=not_advertised,
        relay_limits=relay_limits,
        security=security,
        guard=guard,
    )
    await front.listen(host, port, limits, demands, is_urgent, buffers)
    return front
