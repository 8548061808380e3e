"""`steward sampler`: from options to a running sampler. Leaves out what it does (balance_analytics.sampling)."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.keys import KeysError, sample_keys, write_sketches
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.parquet_writer import ParquetWriter
from balance_analytics.sampling.process import Sampler, unix_ms
from balance_analytics.sampling.prometheus import PrometheusError, PrometheusSettings, query_rates, write_rates
from balance_analytics.sampling.samples_topic import SamplesTopic
from balance_analytics.sampling.settings import NODE_SETTINGS, SamplerSettings, parse_bootstrap
from balance_analytics.sampling.sink import Sink
from balance_analytics.sampling.topic_writer import TopicWriter
from kafka_node.probes import ProbeServer
from kafka_node.security.brokers import BrokerSecurity, broker_security
from kafka_node.security.contexts import client_context
from kafka_node.security.renewal import Renewal
from kafka_node.security.secret_files import read_password
from kafka_node.security.settings import SecuritySettings, TlsFiles
from steward.options.sampler import KeepOptions, KeyOptions, LookOptions, PrometheusOptions, SamplerPlaceOptions
from steward.options.security import BrokerSecurityOptions

log = logging.getLogger(__name__)

EXIT_OK, EXIT_FAILED = 0, 1
MINUTE_MS = 60_000
KEYS_TIMEOUT_S = 300.0
"""For the keys of all topics asked for: a million messages of a kilobyte take a minute."""


@dataclass(frozen=True, slots=True)
class SamplerPlan:
    """Everything that the options said, checked."""

    settings: SamplerSettings
    topic: SamplesTopic
    keep: KeepOptions
    place: SamplerPlaceOptions
    once: bool
    keys: KeyOptions
    prometheus: PrometheusSettings | None
    rates: PrometheusOptions
    tls: TlsFiles
    security: BrokerSecurity


def sampler_plan(
    look: LookOptions,
    keep: KeepOptions,
    place: SamplerPlaceOptions,
    brokers: BrokerSecurityOptions,
    keys: KeyOptions,
    rates: PrometheusOptions,
) -> SamplerPlan:
    """Check options and read files. Raises ValueError, which says what cannot be, and nothing of what is in a file."""
    if (keys.key_topic or keys.key_sketches) and not (look.once and keys.key_topic and keys.key_sketches):
        raise ValueError("keys are counted with --once, --key-topic and --key-sketches together")
    tls = TlsFiles(certificate=brokers.broker_tls_certificate, key=brokers.broker_tls_key, ca=brokers.broker_tls_ca)
    security = broker_security(
        SecuritySettings(
            broker_tls=tls,
            broker_sasl_mechanism=brokers.broker_sasl_mechanism,
            broker_sasl_username=brokers.broker_sasl_username,
            broker_sasl_password_file=brokers.broker_sasl_password_file,
        )
    )
    protocol = look.security_protocol.value
    if protocol.startswith("SASL") and security.sasl is None:
        raise ValueError(f"{protocol} needs a SASL mechanism, a user name and a password file")
    node = security.settings(NODE_SETTINGS, protocol)
    return SamplerPlan(
        SamplerSettings(
            bootstrap=parse_bootstrap(look.bootstrap_server),
            node=node,
            interval_s=look.interval_s,
            with_committed=look.committed,
        ),
        SamplesTopic(
            name=keep.topic, partitions=keep.topic_partitions, retention_ms=keep.topic_retention_hours * 3_600_000
        ),
        keep,
        place,
        look.once,
        keys,
        _prometheus(rates, once=look.once),
        rates,
        tls,
        security,
    )


def _prometheus(options: PrometheusOptions, *, once: bool) -> PrometheusSettings | None:
    """Check what is said of a Prometheus. Raises ValueError."""
    url, rates = options.prometheus_url, options.prometheus_rates
    if url is None and rates is None:
        return None
    if url is None or rates is None or not once:
        raise ValueError("rates are asked for with --once, --prometheus-url and --prometheus-rates together")
    token = options.prometheus_token_file
    return PrometheusSettings(
        url=url,
        tls=client_context(TlsFiles(ca=options.prometheus_ca)),
        token=None if token is None else read_password(token),
    )


def run_sampler(plan: SamplerPlan) -> int:
    """Run until SIGTERM or SIGINT, or once; returns the exit code."""
    return asyncio.run(_run(plan))


async def _run(plan: SamplerPlan) -> int:
    link = ClusterLink(plan.settings.bootstrap, plan.settings.node)
    sink: Sink = TopicWriter(link, plan.topic) if plan.keep.parquet is None else ParquetWriter(plan.keep.parquet)
    metrics = SamplerMetrics()
    sampler = Sampler(plan.settings, link, sink, metrics)
    loop = asyncio.get_running_loop()
    try:
        if plan.once:
            why = await _unless_stopped(_once(plan, sampler, link))
            return EXIT_OK if why is None else _failed(why)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, sampler.stop)
        return await _serve(plan, sampler, metrics)
    finally:
        await link.close()


async def _serve(plan: SamplerPlan, sampler: Sampler, metrics: SamplerMetrics) -> int:
    probes = ProbeServer(metrics.registry, sampler.not_ready)
    renewal = asyncio.create_task(Renewal([(plan.security.tls, plan.tls)]).follow())
    try:
        await probes.listen(plan.place.metrics_host, plan.place.metrics_port)
        log.info("the sampler has started", extra={"interval_s": plan.settings.interval_s})
        await sampler.run()
    except OSError as why:
        return _failed(str(why))
    finally:
        renewal.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewal
        await probes.close()
    log.info("the sampler has ended")
    return EXIT_OK


async def _once(plan: SamplerPlan, sampler: Sampler, link: ClusterLink) -> str | None:
    """Look once, count keys and ask for rates where that is asked for; returns why it failed."""
    why = await sampler.once()
    try:
        if why is None and plan.keys.key_topic and plan.keys.key_sketches is not None:
            deadline = asyncio.get_running_loop().time() + KEYS_TIMEOUT_S
            found = await sample_keys(link, plan.keys.key_topic, plan.keys.key_messages, deadline=deadline)
            await asyncio.to_thread(write_sketches, plan.keys.key_sketches, found.sketches)
            if found.left_out:
                log.warning("keys of some messages were not counted", extra={"why": list(found.left_out)})
        if why is None and plan.prometheus is not None and plan.rates.prometheus_rates is not None:
            end_ms = unix_ms() // MINUTE_MS * MINUTE_MS
            begin_ms = end_ms - plan.rates.prometheus_hours * 60 * MINUTE_MS
            rates = await query_rates(plan.prometheus, begin_ms, end_ms, MINUTE_MS // 1000)
            await asyncio.to_thread(write_rates, plan.rates.prometheus_rates, rates)
    except KeysError as error:
        return f"keys: {error}"
    except (PrometheusError, OSError) as error:
        return str(error)
    return why


async def _unless_stopped(work: Coroutine[Any, Any, str | None]) -> str | None:
    """Do what is to be done once; returns why it failed. A signal breaks it off."""
    task = asyncio.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return "broken off"


def _failed(words: str) -> int:
    sys.stderr.write(f"steward sampler: {words}\n")
    return EXIT_FAILED
