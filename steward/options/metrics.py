"""Address of /metrics and the probes: options that several commands share. The ports differ, so the default is with each command."""

from typing import Annotated

import typer

MetricsHost = Annotated[
    str, typer.Option(envvar="STEWARD_METRICS_HOST", help="Host of /metrics, /healthz and /readyz.")
]

MetricsPort = Annotated[
    int,
    typer.Option(envvar="STEWARD_METRICS_PORT", min=0, max=65535, help="Port of /metrics, /healthz and /readyz."),
]
