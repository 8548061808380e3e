"""Options of `steward sampler`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from balance_analytics.model.sample_rows import SAMPLES_TOPIC
from steward.options.metrics import MetricsHost, MetricsPort


class Protocol(StrEnum):
    """Security protocol of the brokers' listener, with Kafka's names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """The cluster to sample, and the interval."""

    bootstrap_server: Annotated[
        list[str],
        typer.Option(
            envvar="STEWARD_BOOTSTRAP_SERVERS",
            help="HOST:PORT of a broker; repeatable, or several separated by commas.",
        ),
    ]
    security_protocol: Annotated[
        Protocol, typer.Option(envvar="STEWARD_SECURITY_PROTOCOL", help="Security protocol of the brokers' listener.")
    ] = Protocol.PLAINTEXT
    interval_s: Annotated[
        int, typer.Option(envvar="STEWARD_INTERVAL_S", help="Seconds between samples: 5 to 3600.")
    ] = 60
    committed: Annotated[
        bool,
        typer.Option(
            "--committed/--no-committed",
            envvar="STEWARD_COMMITTED",
            help="Read committed offsets of consumer groups, to estimate bytes out.",
        ),
    ] = True
    once: Annotated[bool, typer.Option("--once", help="Take one sample and exit.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Destination of the samples."""

    topic: Annotated[
        str,
        typer.Option(
            envvar="STEWARD_SAMPLES_TOPIC",
            help="Topic for the samples in the sampled cluster; created if it does not exist.",
        ),
    ] = SAMPLES_TOPIC
    topic_partitions: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_SAMPLES_TOPIC_PARTITIONS",
            help="Partitions of the samples topic (only used when the topic is created).",
        ),
    ] = 6
    topic_retention_hours: Annotated[
        int,
        typer.Option(
            envvar="STEWARD_SAMPLES_TOPIC_RETENTION_HOURS",
            help="Retention of the samples topic, in hours (only used when the topic is created).",
        ),
    ] = 720
    parquet: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_SAMPLES_PARQUET", help="Write Parquet files to this folder instead of a topic."),
    ] = None
    parquet_retention_days: Annotated[
        int | None,
        typer.Option(
            envvar="STEWARD_SAMPLES_PARQUET_RETENTION_DAYS",
            help="With --parquet: delete samples of days that ended this many days ago. Without it, nothing is deleted.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerServerOptions:
    """Address of metrics and probes."""

    metrics_host: MetricsHost = "127.0.0.1"
    metrics_port: MetricsPort = 9407


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCountOptions:
    """Counting of record keys."""

    key_topic: Annotated[
        list[str] | None,
        typer.Option(help="With --once: also count the keys of this topic's latest messages; repeatable."),
    ] = None
    key_messages: Annotated[int, typer.Option(help="Number of messages to read from each --key-topic.")] = 100_000
    key_sketches: Annotated[
        Path | None, typer.Option(help="Output file for the counts, read by the analysis job as --key-sketches.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """A Prometheus server that has rates of the brokers."""

    prometheus_url: Annotated[
        str | None,
        typer.Option(help="With --once: also query rates from the Prometheus server at this URL, https://HOST:PORT."),
    ] = None
    prometheus_ca: Annotated[Path | None, typer.Option(help="CA certificates that sign its certificate (PEM).")] = None
    prometheus_token_file: Annotated[Path | None, typer.Option(help="File with one line: the bearer token.")] = None
    prometheus_hours: Annotated[int, typer.Option(min=1, max=168, help="Hours to query, in steps of one minute.")] = 24
    prometheus_rates: Annotated[
        Path | None, typer.Option(help="Output file for the rates, one JSON object per line.")
    ] = None
