"""TLS and ACLs of a broker's session with ZooKeeper, from Kafka 3.9's settings `zookeeper.ssl.*` and `zookeeper.set.acl`.

Stores are PEM files, as for listeners. A client certificate is the identity of the session. A login by SASL is left out: kazoo needs
another package for it. Source: ZkConfigs and ZooKeeperClient of Kafka 3.9, X509Util of ZooKeeper.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_node.configs.config_rules import AnyValue, ConfigType
from kafka_node.configs.setting_rules import Setting, SettingError
from kafka_node.security.contexts import client_context
from kafka_node.security.listener_settings import PEM, verifies_host_names
from kafka_node.security.settings import TlsFiles

SET_ACL = "zookeeper.set.acl"
ENABLE = "zookeeper.ssl.client.enable"
HOST_NAME_CHECK = "zookeeper.ssl.endpoint.identification.algorithm"
SOCKET = "zookeeper.clientCnxnSocket"
"""Kafka needs Netty's class here for TLS; this broker reads the setting and needs none."""
_STORES = ("keystore", "truststore")
PEM_SUFFIX = ".pem"

_TABLE = {
    setting.name: setting
    for setting in (
        Setting(SET_ACL, ConfigType.BOOLEAN, "false", AnyValue()),
        Setting(ENABLE, ConfigType.BOOLEAN, "false", AnyValue()),
        Setting(HOST_NAME_CHECK, ConfigType.STRING, "HTTPS", AnyValue()),
        Setting(SOCKET, ConfigType.STRING, None, AnyValue()),
        *(
            Setting(f"zookeeper.ssl.{store}.{part}", ConfigType.STRING, None, AnyValue())
            for store in _STORES
            for part in ("location", "type")
        ),
    )
}
NAMES = frozenset(_TABLE)
"""Settings that this module reads."""

_REFUSED = {
    "zookeeper.ssl.keystore.password": "keys with a passphrase are not supported",
    "zookeeper.ssl.crl.enable": "lists of revoked certificates are not read",
    "zookeeper.ssl.ocsp.enable": "servers are not asked for revoked certificates",
}
"""Settings without which TLS would differ from what the file asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperTls:
    """TLS of a session."""

    files: TlsFiles
    verifies_host_names: bool = True

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises ValueError, which names the file."""
        context = client_context(self.files)
        context.check_hostname = self.verifies_host_names
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurity:
    """Identity and encryption of a session."""

    tls: ZooKeeperTls | None = None
    set_acl: bool = False
    """Whether new znodes may be changed only by the identity of this session, which all brokers and controllers have then."""


def read_security(values: Mapping[str, str]) -> ZooKeeperSecurity:
    """Return the security of the session with ZooKeeper. Raises SettingError, which names the setting."""
    tls = _tls(values) if _read(values, ENABLE) else None
    set_acl = bool(_read(values, SET_ACL))
    if set_acl and (tls is None or tls.files.certificate is None):
        raise SettingError(
            f"{SET_ACL} is true, and this broker has no identity in ZooKeeper: set {ENABLE}=true and "
            "zookeeper.ssl.keystore.location, or set it to false. A login by SASL is not supported."
        )
    return ZooKeeperSecurity(tls=tls, set_acl=set_acl)


def _tls(values: Mapping[str, str]) -> ZooKeeperTls:
    for name, reason in _REFUSED.items():
        if values.get(name, "false").strip().lower() not in {"", "false"}:
            raise SettingError(f"{name} is not supported: {reason}. Remove it.")
    checked = verifies_host_names(HOST_NAME_CHECK, str(_read(values, HOST_NAME_CHECK)))
    keystore, truststore = (_store(values, store) for store in _STORES)
    return ZooKeeperTls(files=TlsFiles(certificate=keystore, ca=truststore), verifies_host_names=checked)


def _store(values: Mapping[str, str], which: str) -> Path | None:
    """Return the file of a store. Without a type its name decides, as in ZooKeeper (FileKeyStoreLoaderBuilderProvider)."""
    location = _read(values, f"zookeeper.ssl.{which}.location")
    if not location:
        return None
    path, kind = Path(str(location)), _read(values, f"zookeeper.ssl.{which}.type")
    if (str(kind).upper() != PEM) if kind else (path.suffix.lower() != PEM_SUFFIX):
        raise SettingError(
            f"zookeeper.ssl.{which}.location is {path}: Steward reads PEM files. Convert it, and name it {PEM_SUFFIX} "
            f"or set zookeeper.ssl.{which}.type={PEM}."
        )
    return path


def _read(values: Mapping[str, str], name: str) -> object:
    return _TABLE[name].read(values.get(name))
