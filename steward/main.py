"""The `steward` command line. Every option can be set by an environment variable (`STEWARD_…`).

Each command imports its own module when it runs, so that the controller does not load the operator's libraries.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from steward.loading import without_collections
from steward.options.broker import BrokerOptions
from steward.options.controller import ControllerOptions, LeaderBalanceOptions
from steward.options.formatting import StorageOptions, VoterOptions
from steward.options.groups import in_groups
from steward.options.importing import ManifestOptions, SourceOptions
from steward.options.logs import LogOptions
from steward.options.operator import (
    BrokerPodOptions,
    KubernetesOptions,
    LeaseOptions,
    OperatorServerOptions,
    SparkOptions,
    WebhookOptions,
)
from steward.options.quorum import QuorumOptions
from steward.options.sampler import (
    KeyCountOptions,
    PrometheusOptions,
    Protocol,
    SamplerServerOptions,
    SamplingOptions,
    SinkOptions,
)
from steward.options.security import (
    AuthorizerOptions,
    BrokerSecurityOptions,
    ListenerSecurityOptions,
    MskLoginOptions,
    ZooKeeperSecurityOptions,
)
from steward.options.what_if import ScenarioOptions, WhatIfSourceOptions
from steward.plan_command import plan_app

app = typer.Typer(
    name="steward",
    help="Kafka's controller as a Kubernetes operator.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

kubectl_app = typer.Typer(
    name="kubectl steward",
    help="Commands of Steward for users of kubectl (the plugin kubectl-steward).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

controller_app = typer.Typer(
    invoke_without_command=True, help="Run the controller of a Kafka cluster in ZooKeeper mode."
)
app.add_typer(controller_app, name="controller")
app.add_typer(plan_app, name="plan")
kubectl_app.add_typer(plan_app, name="plan")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - it takes as long as a third of this command line

        typer.echo(f"steward {version('kafka-steward')}")
        raise typer.Exit


@contextmanager
def _option_errors() -> Iterator[None]:
    """Report a ValueError as an error of the options, with exit code 2."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def _steward(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Kafka's controller as a Kubernetes operator."""


@controller_app.callback()
@in_groups
def controller(
    context: typer.Context,
    options: ControllerOptions,
    balance: LeaderBalanceOptions,
    listeners: ListenerSecurityOptions,
    brokers: BrokerSecurityOptions,
    authorizer: AuthorizerOptions,
    zookeeper: ZooKeeperSecurityOptions,
    logs: LogOptions,
) -> None:
    """Run the controller of a Kafka cluster in ZooKeeper mode."""
    if context.invoked_subcommand is not None:
        return
    # Required here, but not by the subcommands, so typer cannot check them.
    if options.zookeeper is None:
        raise typer.BadParameter("Missing option '--zookeeper'.", ctx=context)
    if not options.listener:
        raise typer.BadParameter("Missing option '--listener'.", ctx=context)
    with without_collections():
        from steward.controller_command import run_controller  # noqa: PLC0415 - see the module docstring
        from steward.controller_settings import (  # noqa: PLC0415
            controller_settings,
            security_settings,
            zookeeper_security,
        )

    logs.set_up()
    with _option_errors():
        settings = controller_settings(
            options.zookeeper,
            options.listener,
            options,
            balance,
            security_settings(listeners, brokers),
            authorizer,
            zookeeper_security(zookeeper),
        )
    raise typer.Exit(run_controller(settings))


@controller_app.command("state")
def controller_state(
    address: Annotated[
        str, typer.Option(envvar="STEWARD_CONTROLLER_ADDRESS", help="HOST:PORT of the controller's /metrics.")
    ] = "127.0.0.1:9404",
    topic: Annotated[str | None, typer.Option(help="Show the partitions of this topic instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as JSON.")] = False,
) -> None:
    """Show the state of a controller on this machine: brokers, offline partitions, reassignments and deletions."""
    from rich.console import Console  # noqa: PLC0415 - see the module docstring

    from steward.controller_state import StateError, fetch, show  # noqa: PLC0415

    try:
        state = fetch(address, topic)
    except StateError as error:
        typer.echo(f"steward controller state: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(state, indent=2))
    else:
        show(state, Console())


@controller_app.command("unregister-broker")
@in_groups
def unregister_broker(
    broker: Annotated[int, typer.Argument(min=0, help="Id of the broker.")],
    bootstrap_server: Annotated[
        str, typer.Option(envvar="STEWARD_BOOTSTRAP_SERVERS", help="HOST:PORT of a broker or of the controller.")
    ],
    security_protocol: Annotated[
        Protocol, typer.Option(envvar="STEWARD_SECURITY_PROTOCOL", help="Security protocol of that listener.")
    ] = Protocol.PLAINTEXT,
    *,
    security: BrokerSecurityOptions,
) -> None:
    """Unregister a broker that never returns: topic deletions no longer wait for its logs."""
    from steward.unregister_command import run_unregister  # noqa: PLC0415 - see the module docstring

    with _option_errors():
        code = run_unregister(broker, bootstrap_server, security_protocol.value, security)
    raise typer.Exit(code)


@app.command("format")
@in_groups
def format_directories(storage: StorageOptions, voters: VoterOptions) -> None:
    """Format the directories of a controller or a broker in a KRaft cluster, as kafka-storage format does."""
    from steward.format_command import run_format  # noqa: PLC0415 - see the module docstring

    raise typer.Exit(run_format(storage, voters))


@app.command()
@in_groups
def quorum(options: QuorumOptions, logs: LogOptions) -> None:
    """Run a voter of a KRaft quorum: it takes part in elections and replicates the log, also next to Kafka's controllers.

    It applies no metadata yet: while it leads, brokers and Admin clients are not served.
    """
    with without_collections():
        from steward.quorum_command import run_quorum  # noqa: PLC0415 - see the module docstring

    logs.set_up()
    raise typer.Exit(run_quorum(options))


@app.command()
@in_groups
def broker(options: BrokerOptions, logs: LogOptions) -> None:
    """Run a light broker: Kafka's broker in Python, for laptops, tests and small clusters."""
    with without_collections():
        from steward.broker_command import run_broker  # noqa: PLC0415 - see the module docstring

    logs.set_up()
    raise typer.Exit(run_broker(options))


@app.command("random-uuid")
def random_uuid() -> None:
    """Print a random id in Kafka's form, for a cluster or for the directory of an initial controller."""
    from kafka_log.files.text_files import draw_directory_id  # noqa: PLC0415 - see the module docstring
    from kafka_wire.uuids import encode_uuid  # noqa: PLC0415

    typer.echo(encode_uuid(draw_directory_id()))


@app.command()
@in_groups
def operator(
    kubernetes: KubernetesOptions,
    server: OperatorServerOptions,
    broker_pods: BrokerPodOptions,
    spark: SparkOptions,
    lease: LeaseOptions,
    webhook: WebhookOptions,
    logs: LogOptions,
) -> None:
    """Run the Kubernetes operator for Cluster, Topic, Reassignment and Election resources."""
    with without_collections():
        from kafka_operator.run import run  # noqa: PLC0415 - see the module docstring
        from steward.operator_settings import operator_settings  # noqa: PLC0415

    logs.set_up()
    with _option_errors():
        settings = operator_settings(kubernetes, server, broker_pods, spark, lease, webhook)
    raise typer.Exit(run(settings))


@kubectl_app.command("import")
@app.command("import")
@in_groups
def import_topics(source: SourceOptions, manifests: ManifestOptions) -> None:
    """Write Topic manifests for the topics of a running cluster. Changes nothing in the cluster."""
    from steward.import_command import run_import  # noqa: PLC0415 - see the module docstring

    with _option_errors():
        code = run_import(source, manifests)
    raise typer.Exit(code)


@kubectl_app.command("what-if")
@app.command("what-if")
@in_groups
def what_if(source: WhatIfSourceOptions, scenario: ScenarioOptions) -> None:
    """Show the effects of losing, removing or draining brokers: leaders, offline partitions, copies, disks. Changes nothing."""
    from steward.what_if_command import run_what_if  # noqa: PLC0415 - see the module docstring

    with _option_errors():
        code = run_what_if(source, scenario)
    raise typer.Exit(code)


@app.command()
@in_groups
def sampler(
    sampling: SamplingOptions,
    sink: SinkOptions,
    keys: KeyCountOptions,
    rates: PrometheusOptions,
    server: SamplerServerOptions,
    brokers: BrokerSecurityOptions,
    msk: MskLoginOptions,
    logs: LogOptions,
) -> None:
    """Sample sizes, offsets and leaders of all partitions at an interval, by Kafka's protocol only. For the analytics."""
    with without_collections():
        from steward.sampler_command import run_sampler, sampler_config  # noqa: PLC0415 - see the module docstring

    logs.set_up()
    with _option_errors():
        config = sampler_config(sampling, sink, server, brokers, keys, rates, msk)
    raise typer.Exit(run_sampler(config))
