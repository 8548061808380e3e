"""Options of the controller's security: its listeners, its login at brokers and at ZooKeeper, and who may do what.

Secrets are never options: files that hold them are. Leaves out reading those.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurityOptions:
    """How callers prove who they are, and we to them."""

    tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CERTIFICATE", help="Our listeners' certificate, PEM.")
    ] = None
    tls_key: Annotated[Path | None, typer.Option(envvar="STEWARD_TLS_KEY", help="Its key, PEM.")] = None
    tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CA", help="Authorities of clients' certificates, PEM.")
    ] = None
    tls_client_auth: Annotated[
        str, typer.Option(envvar="STEWARD_TLS_CLIENT_AUTH", help="ssl.client.auth: none, requested or required.")
    ] = "none"
    tls_principal_mapping_rules: Annotated[
        str,
        typer.Option(
            envvar="STEWARD_TLS_PRINCIPAL_MAPPING_RULES",
            help="ssl.principal.mapping.rules: DEFAULT or RULE:pattern/replacement/[LU], with commas between.",
        ),
    ] = "DEFAULT"
    sasl_mechanism: Annotated[
        list[str] | None,
        typer.Option(envvar="STEWARD_SASL_MECHANISMS", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, may be repeated."),
    ] = None
    sasl_users_file: Annotated[
        Path | None, typer.Option(envvar="STEWARD_SASL_USERS_FILE", help="PLAIN's users, a line USER:PASSWORD each.")
    ] = None
    connections_max_reauth_ms: Annotated[
        int,
        typer.Option(envvar="STEWARD_CONNECTIONS_MAX_REAUTH_MS", min=0, help="connections.max.reauth.ms; 0: never."),
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSecurityOptions:
    """How we prove to brokers who we are, and they to us."""

    broker_tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_CA", help="Authorities of brokers, PEM.")
    ] = None
    broker_tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_CERTIFICATE", help="What we show brokers, PEM.")
    ] = None
    broker_tls_key: Annotated[Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_KEY", help="Its key, PEM.")] = None
    broker_sasl_mechanism: Annotated[
        str | None, typer.Option(envvar="STEWARD_BROKER_SASL_MECHANISM", help="How we log in at brokers.")
    ] = None
    broker_sasl_username: Annotated[
        str | None, typer.Option(envvar="STEWARD_BROKER_SASL_USERNAME", help="Who we are to brokers.")
    ] = None
    broker_sasl_password_file: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_SASL_PASSWORD_FILE", help="A file of one line, the password.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerOptions:
    """Who may do what."""

    authorizer: Annotated[
        bool | None,
        typer.Option(
            "--authorizer/--no-authorizer",
            envvar="STEWARD_AUTHORIZER",
            help="Judge every request by the ACLs in ZooKeeper. To be said where the controller logs in at brokers.",
        ),
    ] = None
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SUPER_USERS", help="super.users: User:NAME, may be repeated; brokers have to be among them."
        ),
    ] = None
    allow_everyone_if_no_acl: Annotated[
        bool,
        typer.Option(
            "--allow-everyone-if-no-acl",
            envvar="STEWARD_ALLOW_EVERYONE_IF_NO_ACL",
            help="allow.everyone.if.no.acl.found.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurityOptions:
    """How we prove to ZooKeeper who we are, and it to us."""

    zookeeper_tls: Annotated[bool, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS", help="Speak TLS with ZooKeeper.")] = (
        False
    )
    zookeeper_tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_CA", help="Authorities of ZooKeeper, PEM.")
    ] = None
    zookeeper_tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_CERTIFICATE", help="What we show ZooKeeper, PEM.")
    ] = None
    zookeeper_tls_key: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_KEY", help="Its key, PEM.")
    ] = None
    zookeeper_digest_file: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_ZOOKEEPER_DIGEST_FILE", help="A file of one line USER:PASSWORD for ZooKeeper."),
    ] = None
    zookeeper_set_acl: Annotated[bool, typer.Option(envvar="STEWARD_ZOOKEEPER_SET_ACL", help="zookeeper.set.acl.")] = (
        False
    )
