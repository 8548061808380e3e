"""SCRAM messages (RFC 5802, section 7): parsing and formatting.

    client first   n,,n=USER,r=NONCE             server first   r=NONCE,s=SALT,i=ITERATIONS
    client final   c=biws,r=NONCE,p=PROOF        server final   v=SIGNATURE or e=ERROR

As in Kafka, there is no channel binding, names are ASCII, and extensions are ignored. Source: ScramMessages of Kafka's clients.
Unlike them, this module rejects the extension `m`, as the RFC requires.
"""

import base64
import re
from dataclasses import dataclass

from kafka_wire.sasl.steps import SaslFailed

MAX_MESSAGE_BYTES = 16_384
"""A valid message has a name, a nonce, and a salt or a proof: some hundred bytes."""
NO_CHANNEL_BINDING = b"n,,"

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authorization>{_NAME}))?,)(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """The client's user name and nonce."""

    gs2_header: str
    bare: str
    """The message without its header, which is part of the proof."""
    user: str
    nonce: str
    authorization_id: str = ""
    token_authenticated: bool = False
    """The name is a delegation token's id (KIP-48)."""


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server's nonce, salt and iteration count."""

    text: str
    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """The client's proof."""

    bare: str
    """The message without the proof."""
    channel_binding: bytes
    nonce: str
    proof: bytes


def to_sasl_name(user: str) -> str:
    """Escape a name for a message.

    >>> to_sasl_name("a=b,c")
    'a=3Db=2Cc'
    """
    return user.replace("=", "=3D").replace(",", "=2C")


def from_sasl_name(name: str) -> str:
    """Unescape a name; the patterns allow no other escapes."""
    return name.replace("=2C", ",").replace("=3D", "=")


def client_first(user: str, nonce: str) -> ClientFirst:
    """Create the client's first message."""
    return ClientFirst(NO_CHANNEL_BINDING.decode(), f"n={to_sasl_name(user)},r={nonce}", user, nonce)


def server_first(nonce: str, salt: bytes, iterations: int) -> ServerFirst:
    """Create the server's first message."""
    return ServerFirst(f"r={nonce},s={_to_base64(salt)},i={iterations}", nonce, salt, iterations)


def client_final(nonce: str, proof: bytes = b"") -> ClientFinal:
    """Create the client's final message."""
    return ClientFinal(f"c={_to_base64(NO_CHANNEL_BINDING)},r={nonce}", NO_CHANNEL_BINDING, nonce, proof)


def client_final_text(bare: str, proof: bytes) -> bytes:
    """Format the client's final message."""
    return f"{bare},p={_to_base64(proof)}".encode()


def server_final_text(signature: bytes) -> bytes:
    """Format the server's final message."""
    return f"v={_to_base64(signature)}".encode()


def read_client_first(message: bytes) -> ClientFirst:
    """Parse the client's first message. Raises SaslFailed."""
    found = _read(_CLIENT_FIRST, message, "client first")
    authorization = found["authorization"]
    return ClientFirst(
        gs2_header=found["gs2"],
        bare=found["bare"],
        user=from_sasl_name(found["user"]),
        nonce=found["nonce"],
        authorization_id="" if authorization is None else from_sasl_name(authorization),
        token_authenticated="tokenauth=true" in found["extensions"].lower().split(","),
    )


def read_server_first(message: bytes) -> ServerFirst:
    """Parse the server's first message. Raises SaslFailed."""
    found = _read(_SERVER_FIRST, message, "server first")
    return ServerFirst(message.decode(), found["nonce"], base64.b64decode(found["salt"]), int(found["iterations"]))


def read_client_final(message: bytes) -> ClientFinal:
    """Parse the client's final message. Raises SaslFailed."""
    found = _read(_CLIENT_FINAL, message, "client final")
    channel, proof = base64.b64decode(found["channel"]), base64.b64decode(found["proof"])
    return ClientFinal(found["bare"], channel, found["nonce"], proof)


def read_server_final(message: bytes) -> bytes:
    """Parse the server's final message; returns its signature. Raises SaslFailed, also for an error in the message."""
    found = _read(_SERVER_FINAL, message, "server final")
    if found["error"] is not None:
        raise SaslFailed(f"the server reported an error: {found['error'][:200]}")
    return base64.b64decode(found["signature"])


def _read(pattern: re.Pattern[str], message: bytes, name: str) -> re.Match[str]:
    # Errors do not contain the message: it may be a password for another mechanism.
    if len(message) > MAX_MESSAGE_BYTES:
        raise SaslFailed(f"the SCRAM {name} message has {len(message)} bytes, the limit is {MAX_MESSAGE_BYTES}")
    found = pattern.fullmatch(message.decode(errors="replace"))
    if found is None:
        raise SaslFailed(f"the SCRAM {name} message of {len(message)} bytes is malformed")
    return found


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
