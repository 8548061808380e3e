"""TLS and SASL of a node's listeners, from Kafka's `ssl.*` and `sasl.*` settings.

A name with the prefix listener.name.LISTENER. overrides the same name without it. Stores of certificates are PEM files: Java's own
formats are refused. Source: KafkaConfig.valuesWithPrefixOverride, DefaultSslEngineFactory, JaasContext.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.security.endpoints import Endpoint
from kafka_node.security.jaas import SaslLogin, login, parse_jaas, plain_users
from kafka_node.security.settings import ClientAuth, SecurityProtocol, TlsFiles
from kafka_wire.net.principal_rules import PrincipalRules
from kafka_wire.net.sasl_client import MECHANISMS

LISTENER_PREFIX = "listener.name."
JAAS = "sasl.jaas.config"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
HOST_NAME_CHECK = "ssl.endpoint.identification.algorithm"
PEM = "PEM"

USED = frozenset(
    (
        "connections.max.reauth.ms",
        "sasl.enabled.mechanisms",
        CONTROLLER_MECHANISM,
        "ssl.client.auth",
        HOST_NAME_CHECK,
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.principal.mapping.rules",
        "ssl.truststore.location",
        "ssl.truststore.type",
    )
)
"""Settings that this module reads."""

_REFUSED = {
    "ssl.keystore.certificate.chain": "write the certificate and its key into a PEM file, and set ssl.keystore.location",
    "ssl.keystore.key": "write the certificate and its key into a PEM file, and set ssl.keystore.location",
    "ssl.key.password": "keys with a passphrase are not supported",
    "ssl.keystore.password": "keys with a passphrase are not supported",
    "ssl.truststore.certificates": "write the certificates into a PEM file, and set ssl.truststore.location",
    "ssl.engine.factory.class": "Steward cannot run Java classes",
    "sasl.server.callback.handler.class": "Steward cannot run Java classes",
    "sasl.login.callback.handler.class": "Steward cannot run Java classes",
}
"""Settings without which TLS or SASL would differ from what the file asks for, with what to do."""

_MECHANISM_SETTING = re.compile(r"[a-z0-9-]+\.sasl\.jaas\.config")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """TLS and SASL of one listener."""

    tls: TlsFiles = field(default_factory=TlsFiles)
    tls_client_auth: ClientAuth = ClientAuth.NONE
    tls_principal_mapping_rules: str = "DEFAULT"
    tls_verifies_host_names: bool = True
    """Whether this process compares the host names of other nodes with their certificates."""
    sasl_mechanisms: tuple[str, ...] = ()
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user of PLAIN."""
    connections_max_reauth_ms: int = 0
    login: SaslLogin | None = None
    """How this process authenticates to other nodes on a listener of this name."""


def is_known(name: str) -> bool:
    """Return whether the name without a listener's prefix is one that this module reads."""
    bare = without_prefix(name)
    return bare in USED or bare in _REFUSED or _MECHANISM_SETTING.fullmatch(bare) is not None


def listener_security(values: Mapping[str, str], endpoint: Endpoint, *, login_setting: str | None) -> ListenerSecurity:
    """Return the security of a listener. Raises SettingError.

    `login_setting` names the mechanism of connections to other nodes, where their security is that of this listener.
    """
    own = _Own(values, endpoint.listener)
    protocol = endpoint.security_protocol
    tls, client_auth = TlsFiles(), ClientAuth.NONE
    rules = str(own.read("ssl.principal.mapping.rules"))
    if protocol.is_encrypted:
        own.refuse("ssl.")
        tls = TlsFiles(certificate=own.store("keystore"), ca=own.store("truststore"))
        client_auth = ClientAuth(str(own.read("ssl.client.auth")))
        if tls.certificate is None:
            raise SettingError(f"listener {endpoint.listener} uses {protocol}: set ssl.keystore.location")
        if client_auth is not ClientAuth.NONE and tls.ca is None:
            raise SettingError(f"listener {endpoint.listener} asks for certificates: set ssl.truststore.location")
        try:
            PrincipalRules.parse(rules)
        except ValueError as error:
            raise SettingError(f"ssl.principal.mapping.rules: {error}") from error
    security = ListenerSecurity(
        tls=tls,
        tls_client_auth=client_auth,
        tls_principal_mapping_rules=rules,
        tls_verifies_host_names=own.verifies_host_names(),
    )
    return _with_sasl(security, own, login_setting) if protocol.asks_for_sasl else security


def client_security(
    values: Mapping[str, str], listener: str, protocol: SecurityProtocol, *, login_setting: str
) -> ListenerSecurity:
    """Return the security of connections to a listener that other nodes have and this one does not, as a broker's to controllers.

    Raises SettingError.
    """
    own = _Own(values, listener)
    security = ListenerSecurity(tls_verifies_host_names=own.verifies_host_names())
    if protocol.is_encrypted:
        own.refuse("ssl.")
        security = replace(security, tls=TlsFiles(certificate=own.store("keystore"), ca=own.store("truststore")))
    if protocol.asks_for_sasl:
        own.refuse("sasl.")
        security = replace(security, login=_login(own, login_setting))
    return security


def _login(own: "_Own", login_setting: str) -> SaslLogin:
    mechanism = str(own.read(login_setting))
    _check_mechanism(login_setting, mechanism)
    setting, options = own.jaas(mechanism)
    return login(options, mechanism, setting=setting)


def _with_sasl(security: ListenerSecurity, own: "_Own", login_setting: str | None) -> ListenerSecurity:
    own.refuse("sasl.")
    mechanisms = own.read("sasl.enabled.mechanisms")
    assert isinstance(mechanisms, tuple)
    for name in mechanisms:
        _check_mechanism("sasl.enabled.mechanisms", name)
    reauthentication = own.read("connections.max.reauth.ms")
    assert isinstance(reauthentication, int)
    users: dict[str, str] = {}
    if "PLAIN" in mechanisms:
        _, options = own.jaas("PLAIN")
        users = plain_users(options)
    return replace(
        security,
        sasl_mechanisms=mechanisms,
        plain_users=users,
        connections_max_reauth_ms=reauthentication,
        login=None if login_setting is None else _login(own, login_setting),
    )


def _check_mechanism(setting: str, name: str) -> None:
    if name not in MECHANISMS:
        raise SettingError(f"{setting}: the SASL mechanism {name} is none of {', '.join(MECHANISMS)}")


class _Own:
    """The values of one listener: its own, else those of all listeners."""

    def __init__(self, values: Mapping[str, str], listener: str) -> None:
        prefix = f"{LISTENER_PREFIX}{listener.lower()}."
        own = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
        self._values = {**values, **own}
        self._listener = listener

    def read(self, name: str) -> object:
        """Return a value or its default."""
        return SETTINGS[name].read(self._values.get(name))

    def refuse(self, prefix: str) -> None:
        """Raise SettingError where a setting is given that cannot be followed."""
        for name, advice in _REFUSED.items():
            if name.startswith(prefix) and self._values.get(name):
                raise SettingError(f"{name} is not supported: {advice}")

    def store(self, which: str) -> Path | None:
        """Return the file of `keystore` or `truststore`."""
        location = self.read(f"ssl.{which}.location")
        if not location:
            return None
        kind = str(self.read(f"ssl.{which}.type"))
        if kind.upper() != PEM:
            raise SettingError(f"ssl.{which}.type is {kind}: Steward reads PEM files; convert it and set {PEM}")
        return Path(str(location))

    def verifies_host_names(self) -> bool:
        """Return whether host names are compared with certificates: the default; an empty setting turns it off, as in Kafka."""
        return verifies_host_names(HOST_NAME_CHECK, str(self.read(HOST_NAME_CHECK)))

    def jaas(self, mechanism: str) -> tuple[str, dict[str, str]]:
        """Return the name of the mechanism's login module setting, and the module's options."""
        name = f"{mechanism.lower()}.{JAAS}"
        if name not in self._values:
            raise SettingError(f"listener {self._listener} uses {mechanism}: set {name}")
        return name, parse_jaas(self._values[name], setting=name)


def verifies_host_names(setting: str, algorithm: str) -> bool:
    """Return whether a setting of an endpoint identification algorithm asks for the comparison of host names. Raises SettingError."""
    if algorithm and algorithm.lower() != "https":
        raise SettingError(f"{setting} is {algorithm}: it is https, or empty")
    return bool(algorithm)


def without_prefix(name: str) -> str:
    """Return a setting's name without the prefix listener.name.LISTENER."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    return name.removeprefix(LISTENER_PREFIX).partition(".")[2]
