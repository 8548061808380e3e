"""Dispatch of the requests of one listener: to the controller's handlers, or to a broker through the relay."""

import logging
from collections.abc import Callable, Container, Mapping
from functools import partial

from controller_core.shell.front import envelope, request_limits, route
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.front.relay import DEFAULT_LIMITS, Relay, RelayLimits, SharedVersions
from controller_core.shell.front.sliced_answers import AnswerError, SlicedAnswers
from kafka_node import acks, dispatch, versions
from kafka_node.authorization.guard import Guard
from kafka_node.context import RequestContext
from kafka_node.security import brokers, listeners
from kafka_wire import ApiKey, Body, ErrorCode, codec, schema
from kafka_wire.encoded_body import EncodedBody, Response
from kafka_wire.net.sasl_server import AUTHENTICATE_VERSIONS, HANDSHAKE_VERSIONS
from kafka_wire.net.server import (
    Buffers,
    CloseConnection,
    ConnectionQuotas,
    MalformedRequest,
    Peer,
    Server,
    ServerLimits,
    never,
    serve,
)

log = logging.getLogger(__name__)

CLIENT_ID = "steward-front"  # client id of the front's own requests in brokers' request logs

DEFAULT_SERVER_LIMITS = ServerLimits()
SASL_VERSIONS = {ApiKey.SASL_HANDSHAKE: HANDSHAKE_VERSIONS, ApiKey.SASL_AUTHENTICATE: AUTHENTICATE_VERSIONS}
"""APIs that a SASL listener answers before authentication, in `kafka_wire.net`."""
_KNOWN_KEYS = frozenset(map(int, ApiKey))

Features = Callable[[], versions.BrokerVersions]
"""Supported and finalized features of this process, without ranges of APIs."""


def no_features() -> versions.BrokerVersions:
    """Return that ApiVersions lists no feature."""
    return versions.NO_BROKER


class Front:
    """The front of one listener: `handle` is its server's handler. Created and started by `open_front`."""

    def __init__(
        self,
        listener: str,
        handlers: Mapping[ApiKey, RequestHandler],
        live_brokers: route.LiveBrokers | None,
        *,
        served: Mapping[ApiKey, versions.VersionRange],
        not_advertised: Container[ApiKey] = (),
        relay_limits: RelayLimits = DEFAULT_LIMITS,
        security: brokers.BrokerSecurity = brokers.UNPROTECTED,
        guard: Guard | None = None,
        features: Features = no_features,
        is_active: Callable[[], bool] | None = None,
    ) -> None:
        if is_active is not None:
            handlers = {**handlers, ApiKey.ENVELOPE: self._forwarded}
        if ApiKey.API_VERSIONS in handlers or not handlers.keys() <= served.keys():
            raise ValueError(
                "handlers must be for APIs in `served` other than ApiVersions, which the front answers itself"
            )
        self.listener = listener
        self._handlers = dict(handlers)
        self._guard = guard
        self._features = features
        self._is_active = is_active
        self._own = {key: (served[key][0], served[key][1]) for key in [ApiKey.API_VERSIONS, *handlers]}
        self.relay: Relay | None = None
        self._shared_versions: SharedVersions | None = None
        if live_brokers is not None:
            self.relay = Relay(live_brokers, limits=relay_limits, security=security)
            self._shared_versions = SharedVersions(live_brokers, client_id=CLIENT_ID, security=security)
        self._offered = {key: at for key, at in self._own.items() if key not in not_advertised}
        self._server: Server | None = None
        self._sliced = {False: SlicedAnswers(), True: SlicedAnswers()}
        """Key: whether brokers send the API. Their requests must not wait for the slices of clients."""

    @property
    def port(self) -> int:
        """The port of the listening socket."""
        assert self._server is not None
        return self._server.port

    async def listen(
        self,
        host: str,
        port: int,
        limits: ServerLimits,
        demands: listeners.Demands = listeners.NOTHING,
        is_urgent: Callable[[], bool] = never,
        buffers: Buffers | None = None,
        quotas: ConnectionQuotas | None = None,
    ) -> None:
        """Accept connections on `host`:`port`. Raises OSError if the address is not available."""
        schema.names()  # loads the tables now, since the first request would block the event loop for it
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
            quotas=quotas,
        )

    def change_limits(self, limits: ServerLimits) -> None:
        """Apply other limits while the front listens."""
        assert self._server is not None
        self._server.change_limits(limits)

    def request_bytes(self, key: int, _version: int) -> int:
        """Return the largest frame that is accepted for requests of an API."""
        if key in self._own:
            return request_limits.own_bytes(ApiKey(key))
        if self.relay is None or key in versions.BETWEEN_SERVERS:
            return request_limits.SMALL_BYTES
        if key not in _KNOWN_KEYS and key not in self._relayed_ranges():
            return request_limits.SMALL_BYTES
        return request_limits.relayed_bytes(key)

    async def close(self, grace_ms: int | None = None) -> None:
        """Stop accepting connections, wait up to the grace period for running requests, then close all connections."""
        if self._server is not None:
            await self._server.close(grace_ms)
        if self.relay is not None:
            await self.relay.close()

    def disconnect_broker(self, broker_id: int) -> None:
        """Close the relayed connections to a broker that is no longer live."""
        if self.relay is not None:
            self.relay.disconnect_broker(broker_id)

    def _relayed_ranges(self) -> Mapping[int, versions.VersionRange]:
        return {} if self._shared_versions is None else self._shared_versions.latest.ranges

    async def handle(self, peer: Peer, frame: bytes) -> Response | None:
        """Answer one request frame or relay it to a broker (a server's Handler)."""
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
        except codec.CodecError as error:
            raise MalformedRequest(str(error)) from error

    async def _relay(self, peer: Peer, header: codec.RequestHeader, frame: bytes) -> bytes | None:
        return await self._require_relay(header).forward(peer, header, frame)

    def _require_relay(self, header: codec.RequestHeader) -> Relay:
        """Return the relay. Raises CloseConnection if there is none.

        Kafka's controller closes the connection as well (SocketServer.processCompletedReceives).
        """
        if self.relay is None:
            raise CloseConnection(f"api key {header.api_key} is not served on this listener")
        return self.relay

    async def _api_versions(self, header: codec.RequestHeader, frame: bytes) -> bytes:
        refused = dispatch.api_versions_error(header, frame, self._own[ApiKey.API_VERSIONS], request_limits.OWN_UNITS)
        if refused is not None:
            return refused
        shared = self._features() if self._shared_versions is None else await self._shared_versions.shared()
        body = versions.api_versions_body(self._offered, shared, header.api_version)
        return codec.encode_response(ApiKey.API_VERSIONS, header.api_version, header.correlation_id, body)

    async def _own_request(self, key: ApiKey, peer: Peer, header: codec.RequestHeader, frame: bytes) -> Response | None:
        lowest, highest = self._own[key]
        if not lowest <= header.api_version <= highest:
            return dispatch.unsupported_version(key, header)
        context = self._context(peer, header)
        if self._guard is not None and (failure := await self._guard.refuse_by_header(key, context)) is not None:
            return dispatch.refused_by_header(key, header, frame, failure, request_limits.AUTHORIZATION_UNITS)
        answer = partial(self._authorized_answer, key, peer, header)
        try:
            if key in request_limits.SLICED:
                return await self._sliced[request_limits.SLICED[key].is_from_brokers].answer(key, header, frame, answer)
            body = await answer(codec.decode_bounded(frame, header, request_limits.own_units(key)), is_slice=False)
        except RelayInstead:
            return await self._relay(peer, header, frame)
        except AnswerError as error:
            raise dispatch.failed(key, peer, header, error) from error
        return dispatch.encode_answer(key, peer, header, body)

    async def _forwarded(self, _context: RequestContext, body: Body) -> Body:
        """Answer the request in an Envelope as its client's; the broker that sent the Envelope is authorized already."""
        assert self._is_active is not None, "the handler is only for listeners with Envelopes"
        if not self._is_active():
            return envelope.refused(ErrorCode.NOT_CONTROLLER)
        try:
            inner = envelope.open_envelope(body)
            lowest, highest = self._own.get(inner.key, (0, -1))
            if not lowest <= inner.header.api_version <= highest:
                return envelope.refused(ErrorCode.UNSUPPORTED_VERSION)
            client = Peer(inner.client_host, 0, _ignore, _ignore, inner.principal, is_forwarded=True)
            response = await self._own_request(inner.key, client, inner.header, inner.frame)
        except envelope.EnvelopeError as error:
            log.info("Forwarded request refused", extra={"error": str(error)})
            return envelope.refused(error.code)
        except codec.CodecError as error:
            log.info("Forwarded request refused", extra={"error": str(error)})
            return envelope.refused(ErrorCode.INVALID_REQUEST)
        except CloseConnection:
            return envelope.refused(
                ErrorCode.UNKNOWN_SERVER_ERROR
            )  # Logged already; other clients use the broker's connection.
        if response is None or not self._is_active():
            return envelope.refused(ErrorCode.NOT_CONTROLLER)
        return envelope.sealed(response)

    async def _authorized_answer(
        self, key: ApiKey, peer: Peer, header: codec.RequestHeader, body: Body, *, is_slice: bool
    ) -> Body | EncodedBody:
        """Answer a request or a slice of it by its handler, or refuse it if the authorizer denies it.

        A request is relayed as a whole and under the controller's principal, so all of it must be authorized before. If only a slice
        has been authorized, automatic topic creation is disabled, and a request that would be relayed closes the connection.
        """
        context = self._context(peer, header)
        is_partly_authorized = is_slice and self._guard is not None
        if is_partly_authorized and body.get("allow_auto_topic_creation"):
            body = {**body, "allow_auto_topic_creation": False}
        try:
            if self._guard is not None and (refused := await self._guard.refuse(key, context, body)) is not None:
                return refused
            return await self._handlers[key](context, body)
        except RelayInstead:
            if is_partly_authorized:
                raise CloseConnection(
                    f"{key.name} request is too large to be authorized and relayed as a whole"
                ) from None
            raise
        except CloseConnection:
            raise
        except Exception as error:
            raise dispatch.failed(key, peer, header, error) from error

    def _context(self, peer: Peer, header: codec.RequestHeader) -> RequestContext:
        return dispatch.context_of(self.listener, peer, header)

    @staticmethod
    async def _refused(
        guard: Guard, context: RequestContext, header: codec.RequestHeader, frame: bytes
    ) -> bytes | None:
        """Refuse a request that the caller is not allowed to have relayed; None if it is allowed. Raises CloseConnection."""
        if header.api_key not in _KNOWN_KEYS:
            raise CloseConnection(f"api key {header.api_key} is unknown and cannot be authorized")
        key = ApiKey(header.api_key)
        if (failure := await guard.refuse_by_header(key, context)) is not None:
            return dispatch.refused_by_header(key, header, frame, failure, request_limits.AUTHORIZATION_UNITS)
        body = await guard.refuse(key, context, codec.decode_bounded(frame, header, request_limits.AUTHORIZATION_UNITS))
        if body is None:
            return None
        if not acks.has_response(header, frame):
            raise CloseConnection(f"{key.name} request is denied")
        return codec.encode_response(key, header.api_version, header.correlation_id, body)

    def _check_relayable(self, header: codec.RequestHeader) -> None:
        """Reject requests that no client has a reason to send to brokers. Raises CloseConnection."""
        self._require_relay(header)
        key, version = header.api_key, header.api_version
        if key in versions.BETWEEN_SERVERS:
            raise CloseConnection(f"{ApiKey(key).name} is a request between servers and is not relayed")
        shared = self._relayed_ranges().get(key)
        if shared is not None and not shared[0] <= version <= shared[1]:
            raise CloseConnection(f"not every live broker serves version {version} of api key {key}")
        if shared is None and key not in _KNOWN_KEYS:
            raise MalformedRequest(f"there is no api key {key}")


def _ignore(_: object) -> None:
    """Do nothing: the connection of a forwarded request is the broker's."""


async def open_front(
    listener: str,
    host: str,
    port: int,
    handlers: Mapping[ApiKey, RequestHandler],
    live_brokers: route.LiveBrokers | None,
    *,
    served: Mapping[ApiKey, versions.VersionRange],
    not_advertised: Container[ApiKey] = (),
    limits: ServerLimits = DEFAULT_SERVER_LIMITS,
    relay_limits: RelayLimits = DEFAULT_LIMITS,
    demands: listeners.Demands = listeners.NOTHING,
    security: brokers.BrokerSecurity = brokers.UNPROTECTED,
    guard: Guard | None = None,
    features: Features = no_features,
    is_active: Callable[[], bool] | None = None,
    is_urgent: Callable[[], bool] = never,
    buffers: Buffers | None = None,
    quotas: ConnectionQuotas | None = None,
) -> Front:
    """Listen on `host`:`port` (0: any free port) as the controller's `listener`.

    `handlers` answer the controller's own requests, in the versions of `served`; those of `not_advertised` are answered but not listed
    in ApiVersions. `live_brokers` returns the endpoints of the live brokers on the same listener, to which all other requests are
    relayed; None: there is no relay, and other requests close their connection. `demands` apply to client connections, `security` to
    connections to brokers. `guard` authorizes every request before it is answered or relayed; without a guard every request is
    allowed. `features` returns those that ApiVersions lists where there is no relay. `is_active` returns whether this process is the active controller; with it the
    listener answers requests that brokers forward in Envelopes. `is_urgent` returns whether the controller
    has events to process, which take precedence over writing long responses. `buffers` and `quotas` are shared by the listeners
    of a process; without them the listener has its own. Raises OSError if the address is not available.
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
        features=features,
        is_active=is_active,
    )
    await front.listen(host, port, limits, demands, is_urgent, buffers, quotas)
    return front
