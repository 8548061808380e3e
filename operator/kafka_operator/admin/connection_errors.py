"""Classification of connection errors: TLS and authentication failures of the client, as a reason and a stable message.

Leaves out rejections of single calls (ACLs), which are ordinary responses.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator

from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from kafka_operator.admin.port import ConnectionRejectedError

MAX_WORDS = 300
"""Characters of a broker's message that are quoted."""

MAX_CAUSES = 8
"""Maximum length of an exception chain that is examined; the client makes two or three."""

CHECK_HINT = "Check spec.authentication and its Secret."


def classify_connection_error(failures: Iterable[BaseException]) -> ConnectionRejectedError | None:
    """Return the error for the failures of one attempt; None when none of them is a TLS or authentication failure.

    An authentication failure takes precedence over TLS: its connection was established.
    """
    chain = [cause for failure in failures for cause in _causes(failure)]
    for error in chain:
        if isinstance(error, SaslAuthenticationFailedError):
            return ConnectionRejectedError(
                "AuthenticationFailed", f"Kafka rejected the authentication: {_words(error)} {CHECK_HINT}"
            )
        if isinstance(error, UnsupportedSaslMechanismError):
            words = "The brokers' listener does not support the SASL mechanism of spec.authentication.type."
            return ConnectionRejectedError("AuthenticationFailed", words)
    reasons = [_tls_words(error) for error in chain if isinstance(error, ssl.SSLError)]
    tls = [words for words in reasons if words is not None]
    return ConnectionRejectedError("TlsFailed", min(tls)) if tls else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, including those that the client wrapped as an argument."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            return
        yield found
        wrapped = [item for item in found.args if isinstance(item, BaseException)]
        found = wrapped[0] if wrapped else found.__cause__ or found.__context__


def _tls_words(error: ssl.SSLError) -> str | None:
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


def _words(error: BaseException) -> str:
    """Return an error's message, ended by a full stop."""
    words = " ".join(str(error).split())[:MAX_WORDS].rstrip(".")
    return f"{words}."
