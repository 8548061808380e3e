"""The command line. Every option can be an environment variable (`STEWARD_…`), as a pod's manifest sets it.

Leaves out what the commands do: each is a module of its own, imported when it is asked for, so that the controller does not
carry the operator's libraries.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from steward.options.controller import BalanceOptions, PlaceOptions
from steward.options.groups import in_groups
from steward.options.importing import ManifestOptions, SourceOptions
from steward.options.logs import LogOptions
from steward.options.sampler import (
    KeepOptions,
    KeyOptions,
    LookOptions,
    PrometheusOptions,
    Protocol,
    SamplerPlaceOptions,
)
from steward.options.security import (
    AuthorizerOptions,
    BrokerSecurityOptions,
    ListenerSecurityOptions,
    ZooKeeperSecurityOptions,
)
from steward.plan_command import plan_app

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
app.add_typer(plan_app, name="plan")


@app.callback()
def _steward() -> None:
    """Kafka's controller as a Kubernetes operator."""


@controller_app.callback()
@in_groups
def controller(
    context: typer.Context,
    place: PlaceOptions,
    balance: BalanceOptions,
    listeners: ListenerSecurityOptions,
    brokers: BrokerSecurityOptions,
    authorizer: AuthorizerOptions,
    zookeeper: ZooKeeperSecurityOptions,
    logs: LogOptions,
) -> None:
    """Run the controller of a Kafka cluster in ZooKeeper mode."""
    if context.invoked_subcommand is not None:
        return
    # Needed to run and not to look inside, so that the command line's own check would come too early.
    if place.zookeeper is None:
        raise typer.BadParameter("Missing option '--zookeeper'.", ctx=context)
    if not place.listener:
        raise typer.BadParameter("Missing option '--listener'.", ctx=context)
    from steward.controller_command import run_controller  # noqa: PLC0415 - see the module
    from steward.controller_settings import (  # noqa: PLC0415
        controller_settings,
        security_settings,
        zookeeper_security,
    )

    logs.set_up()
    try:
        settings = controller_settings(
            place.zookeeper,
            place.listener,
            place,
            balance,
            security_settings(listeners, brokers),
            authorizer,
            zookeeper_security(zookeeper),
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


@controller_app.command("unregister-broker")
@in_groups
def unregister_broker(
    broker: Annotated[int, typer.Argument(min=0, help="Id of a broker that never returns.")],
    bootstrap_server: Annotated[
        str, typer.Option(envvar="STEWARD_BOOTSTRAP_SERVERS", help="HOST:PORT of a broker or of the controller.")
    ],
    security_protocol: Annotated[
        Protocol, typer.Option(envvar="STEWARD_SECURITY_PROTOCOL", help="Protocol of that listener.")
    ] = Protocol.PLAINTEXT,
    *,
    security: BrokerSecurityOptions,
) -> None:
    """Stop waiting for a broker that never returns: deletions of topics whose logs it may still hold go on without it."""
    from steward.unregister_command import run_unregister  # noqa: PLC0415 - see the module

    try:
        code = run_unregister(broker, bootstrap_server, security_protocol.value, security)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(code)


@app.command()
@in_groups
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
    pods: Annotated[
        bool,
        typer.Option(
            "--pods/--no-pods", envvar="STEWARD_PODS", help="Replace and scale the pods of Clusters' brokers."
        ),
    ] = False,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain/--no-drain", envvar="STEWARD_DRAIN", help="With --pods: take them off nodes that are drained."
        ),
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", envvar="STEWARD_SPARK", help="Serve SparkApplications and schedules.")
    ] = False,
    spark_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SPARK_NAMESPACES",
            help="With --spark: run SparkApplications in this namespace only, may be repeated; all served by default.",
        ),
    ] = None,
    spark_operator: Annotated[
        bool,
        typer.Option(
            "--spark-operator/--no-spark-operator",
            envvar="STEWARD_SPARK_OPERATOR",
            help="With --spark: hand those of engine SparkOperator to Kubeflow's.",
        ),
    ] = False,
    spark_local: Annotated[
        bool,
        typer.Option(
            "--spark-local/--no-spark-local",
            envvar="STEWARD_SPARK_LOCAL",
            help="With --spark: run those of engine Local as this user, on this machine. For a laptop alone.",
        ),
    ] = False,
    own_namespace: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_OWN_NAMESPACE", help="Namespace of the operator's pod, let go of when deleted with it."
        ),
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_LEASE", help="Lease in --own-namespace, held while it works; others stand by."),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_IDENTITY", help="Its name in the Lease: the pod's. One of no other by default."),
    ] = None,
    shards: Annotated[
        int,
        typer.Option(envvar="STEWARD_SHARDS", min=1, help="Divide Clusters among so many, with a Lease each."),
    ] = 1,
    webhook_port: Annotated[
        int | None,
        typer.Option(envvar="STEWARD_WEBHOOK_PORT", min=0, max=65535, help="HTTPS port of the admission webhook."),
    ] = None,
    webhook_certificate: Annotated[
        Path | None, typer.Option(envvar="STEWARD_WEBHOOK_CERTIFICATE", help="Its certificate with the chain, PEM.")
    ] = None,
    webhook_private_key: Annotated[
        Path | None, typer.Option(envvar="STEWARD_WEBHOOK_PRIVATE_KEY", help="The certificate's key, PEM.")
    ] = None,
    *,
    logs: LogOptions,
) -> None:
    """Run the Kubernetes operator: Topic, Reassignment and Cluster resources."""
    from kafka_operator.run import run  # noqa: PLC0415 - see the module
    from kafka_operator.settings import OperatorSettings  # noqa: PLC0415

    logs.set_up()
    try:
        settings = OperatorSettings(
            namespaces=tuple(namespace or ()),
            kubeconfig=kubeconfig,
            context=context,
            metrics_port=metrics_port,
            health_port=health_port,
            listen_address=listen_address,
            resync_interval_s=resync_interval_s,
            pods=pods,
            drain=drain,
            spark=spark,
            spark_namespaces=tuple(spark_namespace or ()),
            spark_operator=spark_operator,
            spark_local=spark_local,
            webhook_port=webhook_port,
            webhook_certificate=webhook_certificate,
            webhook_private_key=webhook_private_key,
            own_namespace=own_namespace,
            lease=lease,
            identity=identity,
            shards=shards,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(run(settings))


@app.command("import")
@in_groups
def import_topics(source: SourceOptions, manifests: ManifestOptions) -> None:
    """Write Topic manifests of a live cluster's topics; nothing is changed in it."""
    from steward.import_command import run_import  # noqa: PLC0415 - see the module

    raise typer.Exit(run_import(source, manifests))


@app.command()
@in_groups
def sampler(
    look: LookOptions,
    keep: KeepOptions,
    keys: KeyOptions,
    rates: PrometheusOptions,
    place: SamplerPlaceOptions,
    brokers: BrokerSecurityOptions,
    logs: LogOptions,
) -> None:
    """Look at a cluster once a minute, by Kafka's protocol alone: sizes, offsets, leaders. For the analytics."""
    from steward.sampler_command import run_sampler, sampler_plan  # noqa: PLC0415 - see the module

    logs.set_up()
    try:
        plan = sampler_plan(look, keep, place, brokers, keys, rates)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(run_sampler(plan))
