"""Security options: listeners, connections to brokers and to ZooKeeper, and authorization.

Secrets are never options; the options name files that contain them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurityOptions:
    """TLS and SASL of the controller's listeners."""

    tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CERTIFICATE", help="Certificate of the listeners (PEM).")
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_KEY", help="Private key of the listeners' certificate (PEM).")
    ] = None
    tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CA", help="CA certificates that sign client certificates (PEM).")
    ] = None
    tls_client_auth: Annotated[
        str, typer.Option(envvar="STEWARD_TLS_CLIENT_AUTH", help="ssl.client.auth: none, requested or required.")
    ] = "none"
    tls_principal_mapping_rules: Annotated[
        str,
        typer.Option(
            envvar="STEWARD_TLS_PRINCIPAL_MAPPING_RULES",
            help="ssl.principal.mapping.rules: DEFAULT or RULE:pattern/replacement/[LU], separated by commas.",
        ),
    ] = "DEFAULT"
    sasl_mechanism: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SASL_MECHANISMS",
            help="SASL mechanism of the listeners: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; repeatable.",
        ),
    ] = None
    sasl_users_file: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="STEWARD_SASL_USERS_FILE", help="Users of SASL/PLAIN: one USER:PASSWORD per line; repeatable."
        ),
    ] = None
    connections_max_reauth_ms: Annotated[
        int,
        typer.Option(envvar="STEWARD_CONNECTIONS_MAX_REAUTH_MS", min=0, help="connections.max.reauth.ms; 0: never."),
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSecurityOptions:
    """TLS and SASL of connections to brokers."""

    broker_tls_ca: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_BROKER_TLS_CA", help="CA certificates that sign broker certificates (PEM)."),
    ] = None
    broker_tls_certificate: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_BROKER_TLS_CERTIFICATE", help="Client certificate presented to brokers (PEM)."),
    ] = None
    broker_tls_key: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_KEY", help="Private key of the client certificate (PEM).")
    ] = None
    broker_sasl_mechanism: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_BROKER_SASL_MECHANISM", help="SASL mechanism used to authenticate to brokers."),
    ] = None
    broker_sasl_username: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_BROKER_SASL_USERNAME", help="SASL username used to authenticate to brokers."),
    ] = None
    broker_sasl_password_file: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_BROKER_SASL_PASSWORD_FILE", help="File with one line: the SASL password."),
    ] = None
    broker_sasl_token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STEWARD_BROKER_SASL_TOKEN_FILE",
            help="File with one line: the token for OAUTHBEARER, without a username. It is read at each login.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MskLoginOptions:
    """Login at the brokers of an Amazon MSK cluster by IAM, instead of `BrokerSecurityOptions`' user or token."""

    msk_region: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_MSK_REGION",
            help="AWS region of an Amazon MSK cluster: log in by IAM with the AWS identity of this process, over SASL_SSL.",
        ),
    ] = None
    msk_role_arn: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_MSK_ROLE_ARN", help="AWS role that the identity assumes first; with --msk-region."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerOptions:
    """Authorization by ACLs."""

    authorizer: Annotated[
        bool | None,
        typer.Option(
            "--authorizer/--no-authorizer",
            envvar="STEWARD_AUTHORIZER",
            help="Authorize every request by the ACLs in ZooKeeper. One of the two is required when the controller "
            "authenticates to brokers.",
        ),
    ] = None
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SUPER_USERS", help="super.users: User:NAME; repeatable. Must include the brokers."
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
    """TLS and authentication of the connection to ZooKeeper."""

    zookeeper_tls: Annotated[
        bool, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS", help="Use TLS for connections to ZooKeeper.")
    ] = False
    zookeeper_tls_ca: Annotated[
        Path | None,
        typer.Option(
            envvar="STEWARD_ZOOKEEPER_TLS_CA", help="CA certificates that sign ZooKeeper's certificate (PEM)."
        ),
    ] = None
    zookeeper_tls_certificate: Annotated[
        Path | None,
        typer.Option(
            envvar="STEWARD_ZOOKEEPER_TLS_CERTIFICATE", help="Client certificate presented to ZooKeeper (PEM)."
        ),
    ] = None
    zookeeper_tls_key: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_KEY", help="Private key of the client certificate (PEM)."),
    ] = None
    zookeeper_digest_file: Annotated[
        Path | None,
        typer.Option(
            envvar="STEWARD_ZOOKEEPER_DIGEST_FILE",
            help="File with one line: USER:PASSWORD for ZooKeeper's digest authentication.",
        ),
    ] = None
    zookeeper_set_acl: Annotated[bool, typer.Option(envvar="STEWARD_ZOOKEEPER_SET_ACL", help="zookeeper.set.acl.")] = (
        False
    )
