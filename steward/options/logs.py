"""Logging options of the commands that run as a service."""

from dataclasses import dataclass
from typing import Annotated

import typer

from steward.logs import LogFormat, set_up_logs


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Log format and level."""

    log_format: Annotated[LogFormat, typer.Option(envvar="STEWARD_LOG_FORMAT", help="Log format.")] = LogFormat.JSON
    log_level: Annotated[
        str, typer.Option(envvar="STEWARD_LOG_LEVEL", help="Log level: DEBUG, INFO, WARNING or ERROR.")
    ] = "INFO"

    def set_up(self) -> None:
        """Configure logging for the whole process. Raises typer.BadParameter."""
        try:
            set_up_logs(self.log_format, self.log_level)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--log-level") from error
