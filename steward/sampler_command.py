"""`steward sampler`: runs the sampler (`balance_analytics.sampling`) until a signal, or once."""

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from balance_analytics.sampling.key_counts import KeysError, sample_keys, write_sketches
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.parquet_upkeep import ParquetUpkeep
from balance_analytics.sampling.parquet_writer import ParquetWriter
from balance_analytics.sampling.prometheus import PrometheusSettings, query_rates, write_rates
from balance_analytics.sampling.sampler import Sampler, unix_ms
from balance_analytics.sampling.samples_topic import SamplesTopic
from balance_analytics.sampling.settings import NODE_SETTINGS, ParquetSettings, SamplerSettings
from balance_analytics.sampling.sink import Sink
from balance_analytics.sampling.topic_writer import TopicWriter
from kafka_node.probes import ProbeServer
from kafka_node.security.brokers import BrokerSecurity
from kafka_node.security.contexts import client_context
from kafka_node.security.renewal import Renewal
from kafka_node.security.secret_files import read_password
from kafka_node.security.settings import TlsFiles
from kafka_operator.prometheus.port import PrometheusError
from kafka_wire.net.cluster import ClusterClient, parse_bootstrap
from steward.client_security import NO_MSK_LOGIN, broker_tls_files, client_security
from steward.options.sampler import (
    KeyCountOptions,
    PrometheusOptions,
    SamplerServerOptions,
    SamplingOptions,
    SinkOptions,
)
from steward.options.security import BrokerSecurityOptions, MskLoginOptions

log = logging.getLogger(__name__)

EXIT_OK, EXIT_FAILED = 0, 1
MINUTE_MS = 60_000
KEYS_TIMEOUT_S = 300.0
"""Limit for counting the keys of all --key-topic topics: a million messages of a kilobyte take a minute."""


@dataclass(frozen=True, slots=True)
class SamplerConfig:
    """The options, checked and converted."""

    settings: SamplerSettings
    topic: SamplesTopic
    parquet: ParquetSettings | None
    server: SamplerServerOptions
    once: bool
    keys: KeyCountOptions
    prometheus: PrometheusSettings | None
    rates: PrometheusOptions
    tls: TlsFiles
    security: BrokerSecurity


def sampler_config(
    sampling: SamplingOptions,
    sink: SinkOptions,
    server: SamplerServerOptions,
    brokers: BrokerSecurityOptions,
    keys: KeyCountOptions,
    rates: PrometheusOptions,
    msk: MskLoginOptions = NO_MSK_LOGIN,
) -> SamplerConfig:
    """Check options and read files. Raises ValueError with the wrong option or file, and nothing of a file's contents."""
    if (keys.key_topic or keys.key_sketches) and not (sampling.once and keys.key_topic and keys.key_sketches):
        raise ValueError("to count keys, give --once, --key-topic and --key-sketches together")
    protocol = sampling.security_protocol.value
    security = client_security(brokers, protocol, msk)
    node = security.settings(NODE_SETTINGS, protocol)
    return SamplerConfig(
        SamplerSettings(
            bootstrap=parse_bootstrap(sampling.bootstrap_server),
            node=node,
            interval_s=sampling.interval_s,
            with_committed=sampling.committed,
        ),
        SamplesTopic(
            name=sink.topic, partitions=sink.topic_partitions, retention_ms=sink.topic_retention_hours * 3_600_000
        ),
        _parquet_settings(sink, once=sampling.once),
        server,
        sampling.once,
        keys,
        _prometheus_settings(rates, once=sampling.once),
        rates,
        broker_tls_files(brokers),
        security,
    )


def _parquet_settings(sink: SinkOptions, *, once: bool) -> ParquetSettings | None:
    """Check the options of Parquet files. Raises ValueError."""
    if sink.parquet_retention_days is not None and (sink.parquet is None or once):
        raise ValueError("--parquet-retention-days needs --parquet, and a sampler that keeps running: omit --once")
    return (
        None
        if sink.parquet is None
        else ParquetSettings(folder=sink.parquet, retention_days=sink.parquet_retention_days)
    )


def _prometheus_settings(options: PrometheusOptions, *, once: bool) -> PrometheusSettings | None:
    """Check the options of Prometheus. Raises ValueError."""
    url, rates = options.prometheus_url, options.prometheus_rates
    if url is None and rates is None:
        return None
    if url is None or rates is None or not once:
        raise ValueError("to query rates, give --once, --prometheus-url and --prometheus-rates together")
    token = options.prometheus_token_file
    return PrometheusSettings(
        url=url,
        tls=client_context(TlsFiles(ca=options.prometheus_ca)),
        token=None if token is None else read_password(token),
    )


def run_sampler(config: SamplerConfig) -> int:
    """Run until SIGTERM or SIGINT, or once, and return the exit code."""
    return asyncio.run(_run(config))


async def _run(config: SamplerConfig) -> int:
    client = ClusterClient(config.settings.bootstrap, config.settings.node)
    sink: Sink = TopicWriter(client, config.topic) if config.parquet is None else ParquetWriter(config.parquet.folder)
    metrics = SamplerMetrics()
    sampler = Sampler(config.settings, client, sink, metrics)
    loop = asyncio.get_running_loop()
    try:
        if config.once:
            failure = await _unless_stopped(_once(config, sampler, client))
            return EXIT_OK if failure is None else _failed(failure)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, sampler.stop)
        return await _serve(config, sampler, metrics)
    finally:
        await client.close()


async def _serve(config: SamplerConfig, sampler: Sampler, metrics: SamplerMetrics) -> int:
    probes = ProbeServer(metrics.registry, sampler.not_ready)
    tasks = [asyncio.create_task(Renewal([(config.security.tls, config.tls)]).follow())]
    if config.parquet is not None:
        tasks.append(asyncio.create_task(ParquetUpkeep(config.parquet, unix_ms).run()))
    try:
        await probes.listen(config.server.metrics_host, config.server.metrics_port)
        log.info("Sampler started", extra={"interval_s": config.settings.interval_s})
        await sampler.run()
    except OSError as error:
        return _failed(str(error))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await probes.close()
    log.info("Sampler stopped")
    return EXIT_OK


async def _once(config: SamplerConfig, sampler: Sampler, client: ClusterClient) -> str | None:
    """Take one sample, count keys and query rates as the options request; return the failure, or None."""
    failure = await sampler.once()
    try:
        if failure is None and config.keys.key_topic and config.keys.key_sketches is not None:
            deadline = asyncio.get_running_loop().time() + KEYS_TIMEOUT_S
            found = await sample_keys(client, config.keys.key_topic, config.keys.key_messages, deadline=deadline)
            await asyncio.to_thread(write_sketches, config.keys.key_sketches, found.sketches)
            if found.not_counted:
                log.warning("Keys of some messages were not counted", extra={"reason": list(found.not_counted)})
        if failure is None and config.prometheus is not None and config.rates.prometheus_rates is not None:
            end_ms = unix_ms() // MINUTE_MS * MINUTE_MS
            begin_ms = end_ms - config.rates.prometheus_hours * 60 * MINUTE_MS
            rates = await query_rates(config.prometheus, begin_ms, end_ms, MINUTE_MS // 1000)
            await asyncio.to_thread(write_rates, config.rates.prometheus_rates, rates)
    except KeysError as error:
        return f"keys: {error}"
    except (PrometheusError, OSError) as error:
        return str(error)
    return failure


async def _unless_stopped(work: Coroutine[Any, Any, str | None]) -> str | None:
    """Run the work and return its failure, or None. SIGTERM and SIGINT cancel it."""
    task = asyncio.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return "cancelled by a signal"


def _failed(message: str) -> int:
    sys.stderr.write(f"steward sampler: {message}\n")
    return EXIT_FAILED
