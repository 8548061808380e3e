"""Operator process: composition, start, supervision and shutdown.

With a Lease it works only while it holds the Lease; before, it reads, lists and watches nothing. A process that loses its Lease re-executes itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import secrets
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NoReturn

import kopf
from kubernetes.aio.client import Configuration
from prometheus_client import start_http_server

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import Admin, ClusterUnreachableError
from kafka_operator.engine.admission import Admission
from kafka_operator.engine.approvals import Approvals
from kafka_operator.engine.core import build_core
from kafka_operator.kube.approvals import ApprovalClient
from kafka_operator.kube.pods import PodClient
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.prometheus.client import HttpPrometheus
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.security import Security
from kafka_operator.rights import needed_rights
from kafka_operator.settings import OperatorSettings
from reconciler.decide.shards import lease_names, shard_of
from reconciler.engine.core import Core
from reconciler.engine.fence import fenced
from reconciler.engine.leadership import Leadership, LeaseLostError
from reconciler.engine.resync import NotInstalledError
from reconciler.kube.client import KubeClient
from reconciler.kube.leases import LeaseClient
from reconciler.kube.login import LoginError, configuration, connection_info
from reconciler.kube.port import RefusedError, UnavailableError
from reconciler.probes import BATCH_MAX_S, BEAT_MAX_S, Check, Probes
from reconciler.rights import MissingRightsError, require_rights
from reconciler.watching import make_registry, watch
from reconciler.webhook import CertificateError, Webhook
from spark_operator.engine.applications import SparkPorts
from spark_operator.engine.local import LocalDrivers
from spark_operator.kube.client import SparkClient
from spark_operator.metrics import SparkMetrics

WATCH_LAG_RESYNCS = 3
"""A change that this many lists have returned and the watch has not delivered counts as lost."""

NOISY_LOGGERS = ("aiohttp", "asyncio", "kopf", "kubernetes")
"""Libraries that log a line for each request and each event; their warnings are kept."""

EXIT_OK, EXIT_FAILED = 0, 1

log = logging.getLogger(__name__)


def run(settings: OperatorSettings) -> int:
    """Run the operator until SIGTERM or SIGINT; return the process's exit code. Logs are set up by the caller."""
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        asyncio.run(_operate(settings))
    except (CertificateError, LoginError, MissingRightsError, NotInstalledError, RefusedError) as error:
        log.error("Operator cannot start", extra={"error": str(error)})
        return EXIT_FAILED
    except LeaseLostError as error:
        log.error("Lost Lease; restarting", extra={"error": str(error)})
        _reexec()
    except asyncio.CancelledError:
        return EXIT_OK
    except Exception:  # whatever the cause, the container is restarted and continues from the current state
        log.exception("Operator failed")
        return EXIT_FAILED
    log.info("Operator stopped")
    return EXIT_OK


def _reexec() -> NoReturn:
    """Replace this process by a new one with the same command line: no state, no calls in progress, standby.

    Exiting would also work, but the kubelet waits up to five minutes before it restarts a container that
    exits each time the API server is unavailable.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - what is run is what runs


async def _operate(settings: OperatorSettings) -> None:
    _end_on_signals()
    metrics = KafkaMetrics()
    found = await configuration(settings.kubeconfig, settings.context)
    async with contextlib.AsyncExitStack() as stack:
        kube = KubeClient(found, metrics)
        stack.push_async_callback(kube.close)
        leadership = _make_leadership(settings, kube, metrics)
        if leadership is not None:
            stack.push_async_callback(leadership.release)
        core = _make_core(settings, kube, metrics, leadership)
        stack.push_async_callback(core.close)  # before the Lease is given back
        _listen(settings, core, leadership, metrics, stack)
        await _answer_reviews(settings, kube, metrics, stack)
        log.info("Operator starting", extra={"namespaces": list(settings.namespaces) or "all", "api": found.host})
        heartbeat = asyncio.create_task(core.loop.beat(), name="heartbeat")
        stack.callback(heartbeat.cancel)
        await require_rights(kube, needed_rights(settings))
        if leadership is not None:
            metrics.shard.labels(str(settings.shards)).set(await leadership.acquire())
        await _run_until_first_exit(core, leadership, heartbeat, found, settings)
        if settings.own_namespace is not None:
            await core.loop.close()  # no finalizer is added any more
            await core.teardown.remove_finalizers(settings.own_namespace)


def _end_on_signals() -> None:
    """Cancel the start on SIGTERM and SIGINT; once kopf watches, its own handlers take over."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _make_leadership(settings: OperatorSettings, kube: KubeClient, metrics: KafkaMetrics) -> Leadership | None:
    """Return the leader election, None if the settings have no Lease."""
    if settings.lease is None:
        return None
    assert settings.own_namespace is not None, settings  # checked by the settings
    return Leadership(
        LeaseClient(kube, settings.own_namespace),
        lease_names(settings.lease, settings.shards),
        settings.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}",
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        metrics=metrics,
        create_after_s=settings.create_lease_after_s,
    )


def _make_core(
    settings: OperatorSettings, kube: KubeClient, metrics: KafkaMetrics, leadership: Leadership | None
) -> Core:
    """Build the engine; with Leases no call passes its ports unless one is held, and other shards' Clusters are ignored."""

    def is_active() -> bool:
        return leadership is None or leadership.is_active

    def serves(ref: ClusterRef) -> bool:
        return leadership is None or shard_of(ref, settings.shards) == leadership.shard

    def connect(bootstrap_servers: Sequence[str], security: Security) -> Admin:
        admin: Admin = KafkaAdmin(bootstrap_servers, metrics, security)
        return fenced(admin, is_active, lambda: ClusterUnreachableError("the Lease is no longer held"))

    guarded = fenced(kube, is_active, lambda: UnavailableError("the Lease is no longer held"))
    return build_core(
        guarded,
        connect,
        metrics,
        prometheus=HttpPrometheus(),
        namespaces=settings.namespaces,
        resync_interval_s=settings.resync_interval_s,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        rng=random.SystemRandom(),
        pods=PodClient(guarded) if settings.pods else None,
        drain=settings.drain,
        serves=serves,
        spark=_spark_ports(settings, guarded, metrics),
        aws_identity_namespaces=settings.aws_identity_namespaces,
    )


def _spark_ports(settings: OperatorSettings, kube: KubeClient, metrics: KafkaMetrics) -> SparkPorts | None:
    """Return the ports for SparkApplications; None if they are not served."""
    if not settings.spark:
        return None
    local = LocalDrivers() if settings.spark_local else None
    namespaces = frozenset(settings.spark_namespaces)
    return SparkPorts(
        SparkClient(kube),
        SparkMetrics(metrics.registry),
        local,
        kubeflow=settings.spark_operator,
        namespaces=namespaces,
    )


def _listen(
    settings: OperatorSettings,
    core: Core,
    leadership: Leadership | None,
    metrics: KafkaMetrics,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Open the ports for metrics and probes."""
    if settings.metrics_port is not None:
        server, thread = start_http_server(settings.metrics_port, settings.listen_address, metrics.registry)
        stack.callback(thread.join)
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
    if settings.health_port is not None:
        health, ready = _checks(core, leadership, settings.resync_interval_s, metrics)
        notes = {} if leadership is None else {"lease": lambda: leadership.standby_reason}
        probes = Probes(settings.listen_address, settings.health_port, health=health, ready=ready, notes=notes)
        stack.callback(probes.close)


async def _answer_reviews(
    settings: OperatorSettings, kube: KubeClient, metrics: KafkaMetrics, stack: contextlib.AsyncExitStack
) -> None:
    """Start the webhook; it needs no Lease, since it changes nothing."""
    if settings.webhook_port is None:
        return
    assert settings.webhook_certificate is not None, settings  # checked by the settings
    assert settings.webhook_private_key is not None, settings

    def connect(bootstrap_servers: Sequence[str], security: Security) -> Admin:
        return KafkaAdmin(bootstrap_servers, metrics, security)

    namespaces = settings.namespaces
    admission = Admission(
        kube,
        connect,
        metrics,
        namespaces=namespaces,
        clock=time.monotonic,
        rng=random.SystemRandom(),
        aws_identity_namespaces=settings.aws_identity_namespaces,
    )
    stack.push_async_callback(admission.close)
    approvals = Approvals(ApprovalClient(kube), metrics).review if settings.webhook_approvals else None
    webhook = Webhook(settings.webhook_certificate, settings.webhook_private_key, admission.review, approvals)
    stack.push_async_callback(webhook.close)
    await webhook.start(settings.listen_address, settings.webhook_port)


def _checks(
    core: Core, leadership: Leadership | None, resync_interval_s: float, metrics: KafkaMetrics
) -> tuple[Mapping[str, Check], Mapping[str, Check]]:
    def loop() -> str | None:
        age_s = time.monotonic() - core.loop.beat_s
        return None if age_s < BEAT_MAX_S else f"the event loop has been blocked for {age_s:.0f} s"

    def batch() -> str | None:
        age_s = core.loop.oldest_batch_s
        return None if age_s < BATCH_MAX_S else f"a batch has taken {age_s:.0f} s"

    def watching() -> str | None:
        lag_s = core.watch_lag.lag_s
        metrics.watch_lag.set(lag_s)
        limit_s = WATCH_LAG_RESYNCS * resync_interval_s
        return None if lag_s < limit_s else f"the watch has not delivered a change for {lag_s:.0f} s"

    def loaded() -> str | None:
        if leadership is not None and leadership.standby_reason is not None:
            return None  # a standby lists nothing; if it were not ready, it would block every upgrade
        return None if core.resync.loaded else "the initial list of resources is not complete"

    return {"loop": loop, "batch": batch, "watch": watching}, {"loaded": loaded}


async def _run_until_first_exit(
    core: Core,
    leadership: Leadership | None,
    heartbeat: asyncio.Task[None],
    found: Configuration,
    settings: OperatorSettings,
) -> None:
    """Run the watch, the resync, the heartbeat and the Lease; when one ends, cancel the others, and raise its exception."""

    async def login() -> kopf.ConnectionInfo:
        return await connection_info(found)

    registry = make_registry(core.event_handler.handle, login, core.loop.close, core.kinds)
    watching: Awaitable[None] = watch(registry, settings.namespaces)
    tasks = [
        heartbeat,
        asyncio.create_task(core.resync.run(), name="resync"),
        asyncio.create_task(core.gauges.run(), name="gauges"),
        asyncio.ensure_future(watching),
    ]
    if leadership is not None:
        tasks.append(asyncio.create_task(leadership.lost(), name="lease"))
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()
