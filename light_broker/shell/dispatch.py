"""Dispatch of the requests of one listener: to the handler of the API, or to the control plane.

Source: KafkaApis.handle, ForwardingManager.
"""

import asyncio
import logging
from collections.abc import Mapping

from kafka_node import versions
from kafka_node.authorization.refusal import refusal
from kafka_node.authorization.table import OPEN, WHOLE_REQUESTS, Table
from kafka_node.context import RequestContext
from kafka_node.dispatch import (
    api_versions_error,
    context_of,
    encode_answer,
    failed,
    refused_by_header,
    unsupported_version,
)
from kafka_node.versions import BrokerVersions, VersionRange
from kafka_wire import ApiKey, Body, Failure, codec
from kafka_wire.codec import CodecError, RequestHeader
from kafka_wire.encoded_body import EncodedBody, Response
from kafka_wire.net.peer import Frame
from kafka_wire.net.server import CloseConnection, MalformedRequest, Peer
from light_broker.control.port import ControlPlaneError
from light_broker.shell.apis.table import APIS, Api
from light_broker.shell.broker import Broker

log = logging.getLogger(__name__)

API_VERSIONS = (0, 4)

UNITS = 400_000
"""Decoding budget of a request: 70 ms and 12 MB at most. A fetch of 50,000 partitions takes half of it."""

CONTROLLER_UNITS = 20_000_000
"""Decoding budget of a request of the controller, which is authorized before it is decoded: some 500,000 partitions."""

_KEYS = {key.value: key for key in ApiKey}

_AT_ONCE = frozenset(key.to_bytes(2, "big") for key in (ApiKey.PRODUCE, ApiKey.FETCH))
"""API keys of the requests that are most of a broker's work, as their frames begin."""

SHOWN_PRODUCE = (0, 13)
"""Versions of Produce in ApiVersions. Kafka 4 shows 0 to 2, which it does not serve, since librdkafka reads from them which codecs a
broker knows (KAFKA-18659)."""


def needs(apis: Mapping[ApiKey, Api], forwarded: Mapping[ApiKey, VersionRange]) -> Table:
    """Return the rights that requests need as a whole. Handlers judge the elements of all others."""
    return {key: WHOLE_REQUESTS.get(key, OPEN) for key in [*apis, *forwarded]}


class Dispatch:
    """Handler of one listener.

    `started` is set when the broker serves. All requests wait for it but those of the controller, which bring the metadata.
    """

    def __init__(
        self,
        broker: Broker,
        listener: str,
        started: asyncio.Event,
        apis: Mapping[ApiKey, Api] = APIS,
        authentication: Mapping[ApiKey, VersionRange] | None = None,
        of_controller: Mapping[ApiKey, VersionRange] | None = None,
    ) -> None:
        """`of_controller` are requests of the controller to brokers, which only the listener of brokers serves."""
        self._broker = broker
        self._listener = listener
        self._started = started
        self._apis = apis
        self._of_controller = of_controller or {}
        self._early = {ApiKey.API_VERSIONS, *self._of_controller} if self._of_controller else set()
        self._forwarded = {**broker.control.forwarded, **self._of_controller}
        self._shown = {
            ApiKey.API_VERSIONS: API_VERSIONS,
            **{key: api.versions for key, api in apis.items()},
            **self._forwarded,
            **(authentication or {}),
        }
        if ApiKey.PRODUCE in apis:
            self._shown[ApiKey.PRODUCE] = SHOWN_PRODUCE

    def starts_at_once(self, frame: Frame) -> bool:
        """Return whether the handler of a request may start without a task: of the frequent ones, once nothing delays it."""
        guard = self._broker.guard
        return bytes(frame[:2]) in _AT_ONCE and self._started.is_set() and (guard is None or guard.is_ready)

    async def handle(self, peer: Peer, frame: Frame) -> Response | None:
        """Answer one request frame (a server's Handler, and its LargeHandler)."""
        try:
            header = codec.peek_header(frame)
            if not self._started.is_set() and header.api_key not in self._early:
                await self._started.wait()
            if header.api_key == ApiKey.API_VERSIONS:
                return self._api_versions(header, bytes(frame))
            return await self._request(_known(header.api_key), peer, header, frame)
        except CodecError as error:
            raise MalformedRequest(str(error)) from error

    def _api_versions(self, header: RequestHeader, frame: bytes) -> bytes:
        refused = api_versions_error(header, frame, API_VERSIONS, UNITS)
        if refused is not None:
            return refused
        features = self._broker.view.features
        finalized = BrokerVersions(
            {},
            finalized_features_epoch=features.epoch,
            finalized_features={name: (level, level) for name, level in features.levels.items()},
        )
        body = versions.api_versions_body(self._shown, finalized, header.api_version)
        return codec.encode_response(ApiKey.API_VERSIONS, header.api_version, header.correlation_id, body)

    async def _request(self, key: ApiKey, peer: Peer, header: RequestHeader, frame: Frame) -> Response | None:
        api = self._apis.get(key)
        served = self._forwarded.get(key) if api is None else api.versions
        if served is None:
            raise CloseConnection(f"{key.name} is not served here")
        if not served[0] <= header.api_version <= served[1]:
            return unsupported_version(key, header)
        context, guard = context_of(self._listener, peer, header), self._broker.guard
        if guard is not None and (failure := await guard.refuse_by_header(key, context)) is not None:
            return refused_by_header(key, header, bytes(frame), failure, UNITS)
        body = _decoded(api, header, frame, CONTROLLER_UNITS if key in self._of_controller else UNITS)
        del frame  # a large one is a view of a buffer, which is used again when nothing refers to it
        if guard is not None and (refused := await guard.refuse(key, context, body)) is not None:
            return encode_answer(key, peer, header, refused)
        answer = await self._answer(api, key, peer, header, context, body)
        if answer is None:
            return None
        if api is None or api.encode is None or isinstance(answer, EncodedBody):
            return encode_answer(key, peer, header, answer)
        try:
            return api.encode(header.api_version, header.correlation_id, answer)
        except CodecError as error:
            raise failed(key, peer, header, error) from error

    async def _answer(
        self, api: Api | None, key: ApiKey, peer: Peer, header: RequestHeader, context: RequestContext, body: Body
    ) -> Body | EncodedBody | None:
        try:
            if api is not None:
                return await api.handle(self._broker, context, body)
            return await self._broker.control.forward(key, context, body)
        except ControlPlaneError as error:
            return refusal(key, header.api_version, body, Failure(error.code, str(error)))
        except CloseConnection:
            raise
        except Exception as error:
            raise failed(key, peer, header, error) from error


def _decoded(api: Api | None, header: RequestHeader, frame: Frame, units: int) -> Body:
    if api is None or api.decode is None:
        return codec.decode_bounded(bytes(frame), header, units)
    return api.decode(frame, header)


def _known(number: int) -> ApiKey:
    key = _KEYS.get(number)
    if key is None:
        raise MalformedRequest(f"there is no api key {number}")
    return key
