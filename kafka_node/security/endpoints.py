"""Addresses in the settings of a node: its listeners, and other nodes.

Source: SocketServerConfigs and AbstractKafkaConfig of Kafka.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.settings import SecurityProtocol

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared, not bound
MAX_PORT = 65_535

_HOST = r"[0-9a-zA-Z\-%._:]"
_LISTENER = re.compile(rf"(.*)://\[?({_HOST}*)\]?:(-?[0-9]+)", re.ASCII)
_ADDRESS = re.compile(rf".*?\[?({_HOST}+)\]?:([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a process."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener: its name in capitals, its security protocol, and its address; an empty host means all interfaces."""

    listener: str
    security_protocol: SecurityProtocol
    host: str
    port: int


def parse_endpoints(
    entries: Iterable[str], protocols: Mapping[str, SecurityProtocol], *, setting: str
) -> tuple[Endpoint, ...]:
    """Return the endpoints of `listeners` or `advertised.listeners`. Raises SettingError."""
    found = tuple(_endpoint(entry, protocols, setting) for entry in entries)
    names = [endpoint.listener for endpoint in found]
    if len(set(names)) != len(names):
        raise SettingError(f"{setting}: each listener must have a different name: {', '.join(names)}")
    return found


def _endpoint(entry: str, protocols: Mapping[str, SecurityProtocol], setting: str) -> Endpoint:
    match = _LISTENER.match(entry)
    if match is None:
        raise SettingError(f"{setting}: {entry!r} is not NAME://HOST:PORT")
    name, port = match[1].upper(), int(match[3])
    if name not in protocols:
        raise SettingError(f"{setting}: no security protocol is defined for listener {name}")
    if port > MAX_PORT:
        raise SettingError(f"{setting}: {entry!r} has a port over {MAX_PORT}")
    return Endpoint(name, protocols[name], match[2], port)


def check_distinct_ports(endpoints: Iterable[Endpoint]) -> None:
    """Raise SettingError where two endpoints have the same port, except one on IPv4 and one on IPv6."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharing in by_port.items():
        kinds = sorted(
            "4" if re.fullmatch(r"[0-9.]+", endpoint.host) else "6" if ":" in endpoint.host else ""
            for endpoint in sharing
        )
        if len(sharing) > 1 and kinds != ["4", "6"]:
            names = ", ".join(endpoint.listener for endpoint in sharing)
            raise SettingError(f"listeners: {names} have the same port {port}; each listener needs one of its own")


def parse_address(text: str, *, setting: str) -> Address:
    """Return the address of HOST:PORT or [HOST]:PORT. Raises SettingError."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise SettingError(f"{setting}: {text!r} is not HOST:PORT")
    port = int(match[2])
    if port > MAX_PORT:
        raise SettingError(f"{setting}: {text!r} has a port over {MAX_PORT}")
    return Address(match[1], port)
