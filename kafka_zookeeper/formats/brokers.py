"""`/brokers/ids/N`: registration of a broker. The znode's czxid is the broker epoch.

JSON versions: 1 host and port, 2 endpoints, 3 a rack, 4 (Kafka 0.10) named listeners, 5 (Kafka 2.7) supported features. Kafka 3.9
reads all of them and later ones, by their fields; it writes 5, or 4 if inter.broker.protocol.version is below 2.7.
Source: BrokerIdZNode in kafka.zk.ZkData, SocketServerConfigs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import Document, FormatError, quote, shown

CURRENT_VERSION = 5

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Before version 4 also the names of the listeners."""

_ENDPOINT = re.compile(r"(?P<listener>[^:]*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*?)\]?:(?P<port>-?[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Advertised endpoint of one listener."""

    listener: str
    """Name of the listener in upper case, as Kafka compares it."""
    host: str
    """A name or an address (IPv6 without brackets); empty if the broker advertises none."""
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions of a feature that a broker supports, both ends included."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """Content of a broker's znode."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    jmx_port: int = -1
    timestamp_ms: int = -1
    """Time of the registration, since 1970; -1 if it is unreadable. Informational."""
    version: int = CURRENT_VERSION

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener, by its name in upper case."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


def encode_broker(registration: BrokerRegistration) -> bytes:
    """Return the document in the registration's JSON version, 2 to 5, without the fields that this version lacks, as Kafka does."""
    version, endpoints = registration.version, registration.endpoints
    if not 2 <= version <= CURRENT_VERSION:
        raise ValueError(f"broker {registration.broker_id}: JSON version must be 2 to 5 for encoding, found {version}")
    parts = []
    if version >= 5:
        ranges = (
            f'{quote(name)}:{{"min_version":{versions.lowest},"max_version":{versions.highest}}}'
            for name, versions in registration.features.items()
        )
        parts.append(f'"features":{{{",".join(ranges)}}}')
    if version >= 4:
        protocols = (f"{quote(endpoint.listener)}:{quote(endpoint.security_protocol)}" for endpoint in endpoints)
        parts.append(f'"listener_security_protocol_map":{{{",".join(protocols)}}}')
    parts.append(f'"endpoints":[{",".join(quote(_connection_string(endpoint)) for endpoint in endpoints)}]')
    if version >= 3 and registration.rack is not None:
        parts.append(f'"rack":{quote(registration.rack)}')
    plain = next((endpoint for endpoint in endpoints if endpoint.security_protocol == "PLAINTEXT"), None)
    # For clients that do not support listeners: the first endpoint that they can use, or none.
    port, host = (-1, "null") if plain is None else (plain.port, quote(plain.host))
    parts.append(f'"jmx_port":{registration.jmx_port},"port":{port},"host":{host},"version":{version}')
    parts.append(f'"timestamp":"{registration.timestamp_ms}"')
    return f"{{{','.join(parts)}}}".encode()


def decode_broker(broker_id: int, data: bytes | None) -> BrokerRegistration:
    """Decode a broker's registration of any JSON version from 1."""
    path = paths.broker(broker_id)
    document = documents.read_object(path, data)
    version = documents.int_field(path, document, "version", lowest=1)
    endpoints = _read_v1_endpoints(path, document) if version == 1 else _read_endpoints(path, document)
    rack, timestamp = document.get("rack"), document.get("timestamp")
    return BrokerRegistration(
        broker_id=broker_id,
        endpoints=endpoints,
        rack=None if rack is None else documents.as_text(path, "'rack'", rack),
        features=_read_features(path, document),
        jmx_port=documents.int_field(path, document, "jmx_port"),
        timestamp_ms=int(timestamp) if isinstance(timestamp, str) and re.fullmatch("[0-9]{1,18}", timestamp) else -1,
        version=version,
    )


def _connection_string(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _read_v1_endpoints(path: str, document: Document) -> tuple[Endpoint, ...]:
    host = documents.text_field(path, document, "host")
    return (Endpoint("PLAINTEXT", host, documents.int_field(path, document, "port", -1, 65535), "PLAINTEXT"),)


def _read_endpoints(path: str, document: Document) -> tuple[Endpoint, ...]:
    protocols = _read_protocols(path, document)
    found: dict[str, Endpoint] = {}
    for text in documents.as_list(path, "'endpoints'", documents.field(path, document, "endpoints")):
        match = _ENDPOINT.fullmatch(documents.as_text(path, "an entry of 'endpoints'", text))
        if not match or int(match["port"]) > 65535:
            raise FormatError(path, f"the endpoint {shown(text)} must be LISTENER://host:port")
        listener = match["listener"].upper()
        if listener not in protocols:
            raise FormatError(path, f"the listener {shown(listener)} has no security protocol")
        if listener in found:
            raise FormatError(path, f"the listener {shown(listener)} has two endpoints")
        found[listener] = Endpoint(listener, match["host"], int(match["port"]), protocols[listener])
    return tuple(found.values())


def _read_protocols(path: str, document: Document) -> dict[str, str]:
    key = "listener_security_protocol_map"
    if key not in document:
        return {protocol: protocol for protocol in SECURITY_PROTOCOLS}
    protocols = {}
    for listener, value in documents.as_object(path, repr(key), document[key]).items():
        protocol = documents.as_text(path, f"the security protocol of {shown(listener)}", value).upper()
        if protocol not in SECURITY_PROTOCOLS:
            raise FormatError(path, f"the listener {shown(listener)} has the unknown security protocol {shown(value)}")
        protocols[documents.as_text(path, "a listener's name", listener).upper()] = protocol
    return protocols


def _read_features(path: str, document: Document) -> dict[str, VersionRange]:
    features = {}
    value = document.get("features")
    for name, entry in documents.as_object(path, "'features'", {} if value is None else value).items():
        versions = documents.as_object(path, f"the feature {shown(name)}", entry)
        for label, value in versions.items():
            documents.as_int(path, f"{shown(label)} of the feature {shown(name)}", value)
        lowest = documents.int_field(path, versions, "min_version", 0, 32767)
        highest = documents.int_field(path, versions, "max_version", lowest, 32767)
        features[documents.as_text(path, "a feature's name", name)] = VersionRange(lowest, highest)
    return features
