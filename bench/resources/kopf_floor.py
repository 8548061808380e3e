"""The baseline of operators: kopf with handlers that do nothing, on Topics of one namespace. Any operator on kopf costs at least this.

`python -m bench.resources.kopf_floor KUBECONFIG NAMESPACE` runs until it is ended. A Topic is done when kopf has recorded its handling.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import kopf

from reconciler.kube.login import configuration, connection_info
from reconciler.names import GROUP, VERSION

LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"
"""The annotation that kopf writes at the end."""


async def floor(kubeconfig: Path, namespace: str) -> None:
    """Handle creations and deletions, which needs a finalizer, without any action."""
    found = await configuration(kubeconfig, None)
    registry = kopf.OperatorRegistry()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return await connection_info(found)

    async def nothing(**_: Any) -> None:
        """Do nothing."""

    kopf.on.login(registry=registry)(log_in)
    kopf.on.create(GROUP, VERSION, "topics", registry=registry)(nothing)
    kopf.on.delete(GROUP, VERSION, "topics", registry=registry)(nothing)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    await kopf.operator(registry=registry, settings=settings, standalone=True, namespaces=[namespace])


if __name__ == "__main__":
    asyncio.run(floor(Path(sys.argv[1]), sys.argv[2]))
