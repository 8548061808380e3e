"""Classification of connection errors: TLS and authentication failures of the client, as a reason and a stable message."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from kafka_operator.admin.port import ConnectionRejectedError
from kafka_wire.net.client import AuthenticationFailed, NoToken, RequestFailed

MAX_MESSAGE_CHARACTERS = 300
"""Characters of an error's message that are quoted."""

CHECK_HINT = "Check spec.authentication and its Secret."


def classify_connection_error(failures: Iterable[RequestFailed]) -> ConnectionRejectedError | None:
    """Return the error for the failures of one attempt; None when none of them is a TLS or authentication failure.

    An authentication failure takes precedence over TLS: its connection was established.
    """
    found = list(failures)
    for failure in found:
        if isinstance(failure, AuthenticationFailed):
            message = " ".join(failure.reason.split())[:MAX_MESSAGE_CHARACTERS].rstrip(".")
            what = "There is no token" if isinstance(failure, NoToken) else "Kafka rejected the authentication"
            return ConnectionRejectedError("AuthenticationFailed", f"{what}: {message}. {CHECK_HINT}")
    reasons = [_tls_message(failure.__cause__) for failure in found if isinstance(failure.__cause__, ssl.SSLError)]
    tls = [message for message in reasons if message is not None]
    return ConnectionRejectedError("TlsFailed", min(tls)) if tls else None


def _tls_message(error: ssl.SSLError) -> str | None:
    """Return the message for a TLS failure; None for a closed connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"The brokers' certificate is not trusted: {error.verify_message or error.reason}. Check spec.tls.caSecretRef, and "
            "the host names in spec.bootstrapServers and advertised.listeners."
        )
    reason = (error.reason or "").replace("_", " ").lower()
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not reason:
        return None
    if reason in {"wrong version number", "record layer failure", "packet length too long", "http request"}:
        return "The port does not use TLS. Use the port of another listener, or remove spec.tls."
    if "alert" in reason or "certificate required" in reason:
        return f"The brokers reject the client certificate, or require one: {reason}. {CHECK_HINT}"
    return f"The TLS handshake failed: {reason}."
