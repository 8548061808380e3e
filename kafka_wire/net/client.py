"""Public names of the client side."""

from kafka_wire.net.backoff import Backoff
from kafka_wire.net.connection import Connection
from kafka_wire.net.failures import (
    ConnectionFailed,
    MalformedResponse,
    RequestFailed,
    RequestTimedOut,
    UnsupportedVersion,
)
from kafka_wire.net.node import Node, NodeSettings
from kafka_wire.net.sasl_client import AuthenticationFailed, BearerCredentials, Credentials, NoToken, SaslCredentials

__all__ = [
    "AuthenticationFailed",
    "Backoff",
    "BearerCredentials",
    "Connection",
    "ConnectionFailed",
    "Credentials",
    "MalformedResponse",
    "NoToken",
    "Node",
    "NodeSettings",
    "RequestFailed",
    "RequestTimedOut",
    "SaslCredentials",
    "UnsupportedVersion",
]
