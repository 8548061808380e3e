"""Shared effects of SparkApplications and their schedules: deletion of a run, and handling of rejected steps."""

from __future__ import annotations

import logging

from reconciler.decide.steps import RETRY_LATER_S, RETRY_SOON_S, Retry
from reconciler.engine.cache import ResourceCache
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from reconciler.names import Key
from spark_operator.kube.port import SparkKube
from spark_operator.resources.application import SparkApplication

log = logging.getLogger(__name__)


async def delete_run(kube: SparkKube, cache: ResourceCache, run: SparkApplication) -> None:
    """Delete a SparkApplication, and remove it from the cache."""
    try:
        await kube.delete_run(run.key, run.metadata.uid)
    except (ConflictError, NotFoundError) as error:
        log.info("Run already deleted", extra={"resource": str(run.key), "error": str(error)})
    cache.delete(run.key, run.metadata.uid)


def not_carried_out(key: Key, error: KubeError) -> Retry:
    """Log a step that the API server rejected, and return when to retry: later for a rejection than for an outage."""
    refused = isinstance(error, RefusedError)
    say = log.warning if refused else log.info
    say("Failed to carry out step; retrying", extra={"resource": str(key), "error": str(error)})
    return Retry(RETRY_LATER_S if refused else RETRY_SOON_S)
