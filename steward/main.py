"""The command line. Every option can be an environment variable (`STEWARD_…`), as a pod's manifest sets it.

Leaves out what the commands do: each is a module of its own, imported when it is asked for, so that the controller does not
carry the operator's libraries.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from steward.logs import LogFormat, set_up_logs

app = typer.Typer(
    name="steward",
    help="Kafka's controller as a Kubernetes operator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

controller_app = typer.Typer(
    invoke_without_command=True, help="Run the controller of a Kafka cluster in ZooKeeper mode."
)
app.add_typer(controller_app, name="controller")

LogFormatOption = Annotated[LogFormat, typer.Option(envvar="STEWARD_LOG_FORMAT", help="How logs are written.")]
LogLevelOption = Annotated[str, typer.Option(envvar="STEWARD_LOG_LEVEL", help="DEBUG, INFO, WARNING or ERROR.")]


def _logs(log_format: LogFormat, log_level: str) -> None:
    try:
        set_up_logs(log_format, log_level)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--log-level") from error


@app.callback()
def _steward() -> None:
    """Kafka's controller as a Kubernetes operator."""


@controller_app.callback()
def controller(
    context: typer.Context,
    zookeeper: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_ZOOKEEPER", help="zookeeper.connect: HOST:PORT,HOST:PORT/CHROOT. Required."),
    ] = None,
    listener: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_LISTENERS",
            help="NAME=[PROTOCOL://]HOST:PORT[,ADVERTISED_HOST:ADVERTISED_PORT], once for each listener of the brokers; "
            "PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Required.",
        ),
    ] = None,
    controller_id: Annotated[
        int,
        typer.Option("--id", envvar="STEWARD_ID", min=0, help="An id no broker has, at most reserved.broker.max.id."),
    ] = 1000,
    inter_broker_listener: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_INTER_BROKER_LISTENER", help="inter.broker.listener.name; the first by default."),
    ] = None,
    session_timeout_ms: Annotated[
        int, typer.Option(envvar="STEWARD_SESSION_TIMEOUT_MS", min=1000, help="Session with ZooKeeper.")
    ] = 6000,
    rack: Annotated[str | None, typer.Option(envvar="STEWARD_RACK", help="Rack to be listed under.")] = None,
    metrics_host: Annotated[
        str, typer.Option(envvar="STEWARD_METRICS_HOST", help="Address of /metrics, /healthz and /readyz.")
    ] = "127.0.0.1",
    metrics_port: Annotated[int, typer.Option(envvar="STEWARD_METRICS_PORT", min=0, max=65535)] = 9404,
    auto_leader_rebalance_enable: Annotated[
        bool,
        typer.Option(envvar="STEWARD_AUTO_LEADER_REBALANCE_ENABLE", help="auto.leader.rebalance.enable."),
    ] = True,
    leader_imbalance_per_broker_percentage: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_LEADER_IMBALANCE_PER_BROKER_PERCENTAGE", help="leader.imbalance.per.broker.percentage."
        ),
    ] = 10,
    leader_imbalance_check_interval_seconds: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS", help="leader.imbalance.check.interval.seconds."
        ),
    ] = 300,
    tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CERTIFICATE", help="Our listeners' certificate, PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(envvar="STEWARD_TLS_KEY", help="Its key, PEM.")] = None,
    tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_TLS_CA", help="Authorities of clients' certificates, PEM.")
    ] = None,
    tls_client_auth: Annotated[
        str, typer.Option(envvar="STEWARD_TLS_CLIENT_AUTH", help="ssl.client.auth: none, requested or required.")
    ] = "none",
    sasl_mechanism: Annotated[
        list[str] | None,
        typer.Option(envvar="STEWARD_SASL_MECHANISMS", help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, may be repeated."),
    ] = None,
    sasl_users_file: Annotated[
        Path | None, typer.Option(envvar="STEWARD_SASL_USERS_FILE", help="PLAIN's users, a line USER:PASSWORD each.")
    ] = None,
    connections_max_reauth_ms: Annotated[
        int,
        typer.Option(envvar="STEWARD_CONNECTIONS_MAX_REAUTH_MS", min=0, help="connections.max.reauth.ms; 0: never."),
    ] = 0,
    broker_tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_CA", help="Authorities of brokers, PEM.")
    ] = None,
    broker_tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_CERTIFICATE", help="What we show brokers, PEM.")
    ] = None,
    broker_tls_key: Annotated[Path | None, typer.Option(envvar="STEWARD_BROKER_TLS_KEY", help="Its key, PEM.")] = None,
    broker_sasl_mechanism: Annotated[
        str | None, typer.Option(envvar="STEWARD_BROKER_SASL_MECHANISM", help="How we log in at brokers.")
    ] = None,
    broker_sasl_username: Annotated[
        str | None, typer.Option(envvar="STEWARD_BROKER_SASL_USERNAME", help="Who we are to brokers.")
    ] = None,
    broker_sasl_password_file: Annotated[
        Path | None, typer.Option(envvar="STEWARD_BROKER_SASL_PASSWORD_FILE", help="A file of one line, the password.")
    ] = None,
    authorizer: Annotated[
        bool | None,
        typer.Option(
            "--authorizer/--no-authorizer",
            envvar="STEWARD_AUTHORIZER",
            help="Judge every request by the ACLs in ZooKeeper. To be said where the controller logs in at brokers.",
        ),
    ] = None,
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SUPER_USERS", help="super.users: User:NAME, may be repeated; brokers have to be among them."
        ),
    ] = None,
    allow_everyone_if_no_acl: Annotated[
        bool,
        typer.Option(
            "--allow-everyone-if-no-acl",
            envvar="STEWARD_ALLOW_EVERYONE_IF_NO_ACL",
            help="allow.everyone.if.no.acl.found.",
        ),
    ] = False,
    zookeeper_tls: Annotated[
        bool, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS", help="Speak TLS with ZooKeeper.")
    ] = False,
    zookeeper_tls_ca: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_CA", help="Authorities of ZooKeeper, PEM.")
    ] = None,
    zookeeper_tls_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_CERTIFICATE", help="What we show ZooKeeper, PEM.")
    ] = None,
    zookeeper_tls_key: Annotated[
        Path | None, typer.Option(envvar="STEWARD_ZOOKEEPER_TLS_KEY", help="Its key, PEM.")
    ] = None,
    zookeeper_digest_file: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_ZOOKEEPER_DIGEST_FILE", help="A file of one line USER:PASSWORD for ZooKeeper."),
    ] = None,
    zookeeper_set_acl: Annotated[
        bool, typer.Option(envvar="STEWARD_ZOOKEEPER_SET_ACL", help="zookeeper.set.acl.")
    ] = False,
    log_format: LogFormatOption = LogFormat.JSON,
    log_level: LogLevelOption = "INFO",
) -> None:
    """Run the controller of a Kafka cluster in ZooKeeper mode."""
    if context.invoked_subcommand is not None:
        return
    # Needed to run and not to look inside, so that the command line's own check would come too early.
    if zookeeper is None:
        raise typer.BadParameter("Missing option '--zookeeper'.", ctx=context)
    if not listener:
        raise typer.BadParameter("Missing option '--listener'.", ctx=context)
    from controller_core.shell.security.settings import (  # noqa: PLC0415 - see the module
        ClientAuth,
        SecuritySettings,
        TlsFiles,
    )
    from controller_core.shell.settings import (  # noqa: PLC0415 - see the module
        AuthorizerSettings,
        ControllerSettings,
        LeaderBalance,
        parse_listener,
    )
    from kafka_zookeeper.settings import ZooKeeperSettings  # noqa: PLC0415
    from steward.controller_command import run_controller  # noqa: PLC0415

    _logs(log_format, log_level)
    try:
        ZooKeeperSettings(zookeeper, session_timeout_ms)
        listeners = tuple(map(parse_listener, listener))
        inter_broker = (inter_broker_listener or listeners[0].name).upper()
        settings = ControllerSettings(
            zookeeper,
            controller_id,
            listeners,
            inter_broker,
            session_timeout_ms,
            rack,
            metrics_host,
            metrics_port,
            LeaderBalance(
                auto_leader_rebalance_enable,
                leader_imbalance_per_broker_percentage,
                leader_imbalance_check_interval_seconds,
            ),
            SecuritySettings(
                tls=TlsFiles(certificate=tls_certificate, key=tls_key, ca=tls_ca),
                tls_client_auth=ClientAuth(tls_client_auth),
                sasl_mechanisms=tuple(sasl_mechanism or ()),
                sasl_users_file=sasl_users_file,
                connections_max_reauth_ms=connections_max_reauth_ms,
                broker_tls=TlsFiles(certificate=broker_tls_certificate, key=broker_tls_key, ca=broker_tls_ca),
                broker_sasl_mechanism=broker_sasl_mechanism,
                broker_sasl_username=broker_sasl_username,
                broker_sasl_password_file=broker_sasl_password_file,
                zookeeper_tls=(
                    TlsFiles(certificate=zookeeper_tls_certificate, key=zookeeper_tls_key, ca=zookeeper_tls_ca)
                    if zookeeper_tls or zookeeper_tls_ca or zookeeper_tls_certificate
                    else None
                ),
                zookeeper_digest_file=zookeeper_digest_file,
                zookeeper_set_acl=zookeeper_set_acl,
            ),
            AuthorizerSettings(authorizer, frozenset(super_user or ()), allow_everyone_if_no_acl),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(run_controller(settings))


@controller_app.command("state")
def controller_state(
    address: Annotated[
        str, typer.Option(envvar="STEWARD_CONTROLLER_ADDRESS", help="HOST:PORT of the controller's metrics.")
    ] = "127.0.0.1:9404",
    topic: Annotated[str | None, typer.Option(help="Show this topic's partitions instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the controller told, for programs.")] = False,
) -> None:
    """Look inside a controller on this machine: brokers, what is offline, what is under way and whom it waits for."""
    from rich.console import Console  # noqa: PLC0415 - see the module

    from steward.controller_state import StateError, fetch, show  # noqa: PLC0415

    try:
        told = fetch(address, topic)
    except StateError as error:
        typer.echo(f"steward controller state: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        show(told, Console())


@app.command()
def operator(
    kubeconfig: Annotated[
        Path | None,
        typer.Option(envvar="KUBECONFIG", help="Kubeconfig; without one the pod's own account is used."),
    ] = None,
    context: Annotated[str | None, typer.Option(envvar="STEWARD_CONTEXT", help="Context of the kubeconfig.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(envvar="STEWARD_NAMESPACES", help="Namespace to serve, may be repeated; all by default."),
    ] = None,
    listen_address: Annotated[
        str, typer.Option(envvar="STEWARD_LISTEN_ADDRESS", help="Address of metrics and probes; 0.0.0.0 in a pod.")
    ] = "127.0.0.1",
    metrics_port: Annotated[int, typer.Option(envvar="STEWARD_METRICS_PORT", min=0, max=65535)] = 9405,
    health_port: Annotated[int, typer.Option(envvar="STEWARD_HEALTH_PORT", min=0, max=65535)] = 9406,
    resync_interval_s: Annotated[
        float, typer.Option(envvar="STEWARD_RESYNC_INTERVAL_S", min=1, help="Pause between looks at everything.")
    ] = 120,
    log_format: LogFormatOption = LogFormat.JSON,
    log_level: LogLevelOption = "INFO",
) -> None:
    """Run the Kubernetes operator: Topic, Reassignment and Cluster resources."""
    from kafka_operator.run import run  # noqa: PLC0415 - see the module
    from kafka_operator.settings import OperatorSettings  # noqa: PLC0415

    _logs(log_format, log_level)
    raise typer.Exit(
        run(
            OperatorSettings(
                namespaces=tuple(namespace or ()),
                kubeconfig=kubeconfig,
                context=context,
                metrics_port=metrics_port,
                health_port=health_port,
                listen_address=listen_address,
                resync_interval_s=resync_interval_s,
            )
        )
    )
