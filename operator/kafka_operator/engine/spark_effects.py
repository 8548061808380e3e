"""What SparkApplications and their schedules have in common when they are carried out: a run that is deleted, a step that was refused.

Leaves out which step is taken, and all that one of them alone does.
"""

from __future__ import annotations

import logging

from kafka_operator.decide.steps import RETRY_LATER_S, RETRY_SOON_S, Retry
from kafka_operator.engine.cache import Cache
from kafka_operator.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from kafka_operator.kube.spark_port import SparkKube
from kafka_operator.names import Key
from kafka_operator.resources.spark_application import SparkApplication

log = logging.getLogger(__name__)


async def delete_run(kube: SparkKube, cache: Cache, run: SparkApplication) -> None:
    """Delete a SparkApplication; it is gone from the cache at once."""
    try:
        await kube.delete_run(run.key, run.metadata.uid)
    except (ConflictError, NotFoundError) as error:
        log.info("Run already deleted", extra={"resource": str(run.key), "error": str(error)})
    cache.forget(run.key, run.metadata.uid)


def not_carried_out(key: Key, error: KubeError) -> Retry:
    """Tell of a step that the API server did not take, and when to try again: later where it was refused."""
    refused = isinstance(error, RefusedError)
    say = log.warning if refused else log.info
    say("Failed to carry out step; retrying", extra={"resource": str(key), "error": str(error)})
    return Retry(RETRY_LATER_S if refused else RETRY_SOON_S)
