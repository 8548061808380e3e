"""Options of `steward controller`: its connection to ZooKeeper, its id and listeners, and leader balance."""

from dataclasses import dataclass
from typing import Annotated

import typer

from steward.options.metrics import MetricsHost, MetricsPort


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The cluster, and the addresses and id of the controller in it."""

    zookeeper: Annotated[
        str | None,
        typer.Option(envvar="STEWARD_ZOOKEEPER", help="zookeeper.connect: HOST:PORT,HOST:PORT/CHROOT. Required."),
    ] = None
    listener: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_LISTENERS",
            help="NAME=[PROTOCOL://]HOST:PORT[,ADVERTISED_HOST:ADVERTISED_PORT], once for each listener of the brokers; "
            "PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Required.",
        ),
    ] = None
    # The default is that of reserved.broker.max.id: Kafka generates broker ids above it, so this is the highest id that stays free.
    controller_id: Annotated[
        int,
        typer.Option(
            "--id",
            envvar="STEWARD_ID",
            min=0,
            help="Id of the controller: not the id of a broker, at most reserved.broker.max.id.",
        ),
    ] = 1000
    inter_broker_listener: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_INTER_BROKER_LISTENER", help="inter.broker.listener.name; by default the first listener."
        ),
    ] = None
    session_timeout_ms: Annotated[
        int, typer.Option(envvar="STEWARD_SESSION_TIMEOUT_MS", min=1000, help="ZooKeeper session timeout.")
    ] = 6000
    rack: Annotated[str | None, typer.Option(envvar="STEWARD_RACK", help="Rack of the controller.")] = None
    metrics_host: MetricsHost = "127.0.0.1"
    metrics_port: MetricsPort = 9404
    ignore_topic_policies: Annotated[
        bool,
        typer.Option(
            "--ignore-topic-policies",
            envvar="STEWARD_IGNORE_TOPIC_POLICIES",
            help="Run although brokers set create.topic.policy.class.name or alter.config.policy.class.name. The controller "
            "cannot run these Java classes and does not apply them.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderBalanceOptions:
    """Kafka's settings of automatic leader rebalancing."""

    auto_leader_rebalance_enable: Annotated[
        bool,
        typer.Option(envvar="STEWARD_AUTO_LEADER_REBALANCE_ENABLE", help="auto.leader.rebalance.enable."),
    ] = True
    leader_imbalance_per_broker_percentage: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_LEADER_IMBALANCE_PER_BROKER_PERCENTAGE", help="leader.imbalance.per.broker.percentage."
        ),
    ] = 10
    leader_imbalance_check_interval_seconds: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS", help="leader.imbalance.check.interval.seconds."
        ),
    ] = 300
