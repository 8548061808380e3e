"""Why a cluster that is there does not let us in: what the client's exceptions say, as a reason and words that stay the same.

Left out are refusals of single calls (ACLs), which the brokers answer like any other call.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator

from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from kafka_operator.admin.port import ConnectionRejectedError

MAX_WORDS = 300
"""Characters of a broker's own words that are repeated."""

MAX_CAUSES = 8
"""Links of a chain of exceptions that are looked at; the client makes two or three."""

CHECK_HINT = "Check spec.authentication and its Secret."


def classify_connection_error(failures: Iterable[BaseException]) -> ConnectionRejectedError | None:
    """Return what the failures of one attempt come to; None when none of them says that we are not let in.

    The login's refusal goes before TLS: it was made over a connection that works.
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
    """Return an exception with those that it came of, also where the client wrapped one as an argument."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            return
        yield found
        wrapped = [item for item in found.args if isinstance(item, BaseException)]
        found = wrapped[0] if wrapped else found.__cause__ or found.__context__


def _tls_words(error: ssl.SSLError) -> str | None:
    """Return words for a failure of TLS; None for one that is a closed connection and nothing more."""
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
    """Return an error's own words, ended by a full stop."""
    words = " ".join(str(error).split())[:MAX_WORDS].rstrip(".")
    return f"{words}."
