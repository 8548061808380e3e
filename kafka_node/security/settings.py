"""Security settings of a process: names, and files of certificates and credentials. Secrets themselves are never settings."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kafka_wire.net.principal_rules import PrincipalRules
from kafka_wire.net.sasl_client import MECHANISMS
from kafka_wire.sasl.oauthbearer import OAUTHBEARER


class SecurityProtocol(enum.StrEnum):
    """Kafka's own names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        """Whether the protocol uses TLS."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def asks_for_sasl(self) -> bool:
        """Whether peers must authenticate by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


class ClientAuth(enum.StrEnum):
    """Kafka's ssl.client.auth: whether clients must present a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Files in PEM: the certificate of the process, and the authorities that it trusts."""

    certificate: Path | None = None
    """The certificate, with the intermediate certificates."""
    key: Path | None = None
    """Its key; None: it is in the certificate's file."""
    ca: Path | None = None
    """The trusted authorities; None: those of the system."""

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ValueError(f"the key {self.key} is given without its certificate")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """Settings of one process: its listeners, and its connections to brokers."""

    tls: TlsFiles = TlsFiles()
    """TLS of the listeners."""
    tls_client_auth: ClientAuth = ClientAuth.NONE
    tls_principal_mapping_rules: str = "DEFAULT"
    """Kafka's ssl.principal.mapping.rules: principals of clients by their certificates."""
    sasl_mechanisms: tuple[str, ...] = ()
    """SASL mechanisms that the listeners offer."""
    sasl_users_files: tuple[Path, ...] = ()
    """The users of PLAIN."""
    connections_max_reauth_ms: int = 0
    """Kafka's connections.max.reauth.ms: a client authenticates by SASL again within this time, or is disconnected; 0: never."""
    broker_tls: TlsFiles = TlsFiles()
    broker_sasl_mechanism: str | None = None
    broker_sasl_username: str | None = None
    broker_sasl_password_file: Path | None = None
    broker_sasl_token_file: Path | None = None
    """The token for OAUTHBEARER, read at each login."""

    def __post_init__(self) -> None:
        for name in self.sasl_mechanisms:
            _check_mechanism(name, MECHANISMS)
        self._check_broker_sasl()
        try:
            PrincipalRules.parse(self.tls_principal_mapping_rules)
        except ValueError as error:
            raise ValueError(f"ssl.principal.mapping.rules: {error}") from error
        if self.connections_max_reauth_ms < 0:
            raise ValueError(f"connections.max.reauth.ms is {self.connections_max_reauth_ms}; 0 or more is needed")
        if "PLAIN" in self.sasl_mechanisms and not self.sasl_users_files:
            raise ValueError("listeners that offer PLAIN need a users file")
        if self.tls_client_auth is not ClientAuth.NONE and self.tls.ca is None:
            raise ValueError("listeners that ask clients for certificates need the CA certificates that sign them")

    def _check_broker_sasl(self) -> None:
        """Raise ValueError for an incomplete login at brokers."""
        mechanism, user = self.broker_sasl_mechanism, (self.broker_sasl_username, self.broker_sasl_password_file)
        if mechanism is not None:
            _check_mechanism(mechanism, (*MECHANISMS, OAUTHBEARER))
        if mechanism == OAUTHBEARER or self.broker_sasl_token_file is not None:
            if mechanism != OAUTHBEARER or self.broker_sasl_token_file is None or any(user):
                raise ValueError(
                    f"to authenticate to brokers with a token, the mechanism {OAUTHBEARER} and a token file are needed, and no user"
                )
        elif any((mechanism, *user)) and not all((mechanism, *user)):
            raise ValueError(
                "to authenticate to brokers by SASL, mechanism, user name and password file are all needed"
            )

    @property
    def logs_in_at_brokers(self) -> bool:
        """Whether the process authenticates to brokers, most likely as a super user."""
        return self.broker_sasl_mechanism is not None or self.broker_tls.certificate is not None

    def check_listeners(self, protocols: Iterable[str]) -> None:
        """Raise ValueError where a listener's protocol needs a setting that is missing."""
        for protocol in map(SecurityProtocol, protocols):
            if protocol.is_encrypted and self.tls.certificate is None:
                raise ValueError(f"a listener uses {protocol}: it needs a TLS certificate")
            if protocol.asks_for_sasl and not self.sasl_mechanisms:
                raise ValueError(f"a listener uses {protocol}: it needs a SASL mechanism")


def _check_mechanism(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"the SASL mechanism {name} is not one of {', '.join(known)}")
