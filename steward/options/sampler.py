"""Options of `steward sampler`: what it looks at, how often, and where looks go. Leaves out security (security)."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from balance_analytics.model.sample_rows import SAMPLES_TOPIC


class Protocol(StrEnum):
    """What the brokers' listener speaks: Kafka's own names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOptions:
    """What is looked at, and how often."""

    bootstrap_server: Annotated[
        list[str],
        typer.Option(
            envvar="STEWARD_BOOTSTRAP_SERVERS",
            help="HOST:PORT of a broker; may be repeated, or several with commas between.",
        ),
    ]
    security_protocol: Annotated[
        Protocol, typer.Option(envvar="STEWARD_SECURITY_PROTOCOL", help="What the brokers' listener speaks.")
    ] = Protocol.PLAINTEXT
    interval_s: Annotated[
        int, typer.Option(envvar="STEWARD_INTERVAL_S", help="Seconds from look to look: 5 to 3600.")
    ] = 60
    committed: Annotated[
        bool,
        typer.Option(
            "--committed/--no-committed",
            envvar="STEWARD_COMMITTED",
            help="Ask for consumer groups' committed offsets, from which bytes out are estimated.",
        ),
    ] = True
    once: Annotated[bool, typer.Option("--once", help="Look once, now, and end.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOptions:
    """Where looks go."""

    topic: Annotated[
        str,
        typer.Option(envvar="STEWARD_SAMPLES_TOPIC", help="Topic of the cluster itself, created if it is not there."),
    ] = SAMPLES_TOPIC
    topic_partitions: Annotated[
        int, typer.Option(envvar="STEWARD_SAMPLES_TOPIC_PARTITIONS", help="Its partitions, when it is created.")
    ] = 6
    topic_retention_hours: Annotated[
        int, typer.Option(envvar="STEWARD_SAMPLES_TOPIC_RETENTION_HOURS", help="How long it keeps looks, likewise.")
    ] = 720
    parquet: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_SAMPLES_PARQUET", help="A folder for Parquet files instead of a topic."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerPlaceOptions:
    """Where the process is found."""

    metrics_host: Annotated[
        str, typer.Option(envvar="STEWARD_METRICS_HOST", help="Address of /metrics, /healthz and /readyz.")
    ] = "127.0.0.1"
    metrics_port: Annotated[int, typer.Option(envvar="STEWARD_METRICS_PORT", min=0, max=65535)] = 9407


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOptions:
    """Whose keys are counted."""

    key_topic: Annotated[
        list[str] | None,
        typer.Option(help="With --once: count the keys of this topic's last messages as well; may be repeated."),
    ] = None
    key_messages: Annotated[int, typer.Option(help="Messages of each such topic.")] = 100_000
    key_sketches: Annotated[
        Path | None, typer.Option(help="The file for what was counted, as the study's --key-sketches reads it.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """A Prometheus that knows the brokers' rates."""

    prometheus_url: Annotated[
        str | None, typer.Option(help="With --once: https://HOST:PORT of a Prometheus, asked for rates as well.")
    ] = None
    prometheus_ca: Annotated[Path | None, typer.Option(help="Authorities of its certificate, PEM.")] = None
    prometheus_token_file: Annotated[Path | None, typer.Option(help="A file of one line, its bearer token.")] = None
    prometheus_hours: Annotated[int, typer.Option(min=1, max=168, help="Hours to ask for, by minutes.")] = 24
    prometheus_rates: Annotated[Path | None, typer.Option(help="The file for the rates, a JSON object a line.")] = None
