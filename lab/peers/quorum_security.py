"""Security of a quorum's controller listener, as settings of Kafka's properties file, for Java voters and Steward alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

LISTENER = "CONTROLLER"

_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True, slots=True)
class QuorumSecurity:
    """The security protocol of the listener, and the settings that it needs; clients' are for Kafka's tools."""

    protocol: str = "PLAINTEXT"
    settings: dict[str, str] = field(default_factory=dict)
    client_settings: dict[str, str] = field(default_factory=dict)


def sasl_plaintext(password: str = "of the quorum") -> QuorumSecurity:  # noqa: S107 - a lab's
    """Return SASL/PLAIN without TLS: all members authenticate as one user."""
    login = f'{_PLAIN_LOGIN} username="member" password="{password}"'
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f'{login} user_member="{password}";',
    }
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{login};"}
    return QuorumSecurity("SASL_PLAINTEXT", settings, client)


def mutual_tls(store: Path, authority: Path) -> QuorumSecurity:
    """Return TLS in which both sides show the certificate in `store` (PEM with its key), signed by `authority`."""
    files = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
    }
    return QuorumSecurity("SSL", {**files, "ssl.client.auth": "required"}, {"security.protocol": "SSL", **files})
