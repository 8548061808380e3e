"""Interface of the controller of KRaft mode, as handlers of requests use it.

A process has one controller for its whole life. While it is a standby it applies what is committed; while it is active it also decides.
`is_active` is whether it decides now. All reads are consistent until the next await: the controller changes its state in one step, from
the decision to the append.
"""

from collections.abc import Callable
from typing import Any, Protocol

from controller_core.metadata.record_decision import RecordDecision
from controller_core.shell.active import ActiveController
from kafka_metadata.image import MetadataImage


class MetadataController(ActiveController, Protocol):
    """The controller of one process.

    `submit`, `write`, `until` and `topic_removed` raise TermEndedError where the process is not the active controller, or loses that
    role before the records are committed: whether they are is then unknown. Handlers answer NOT_CONTROLLER.
    """

    @property
    def is_active(self) -> bool:
        """Whether this process is the active controller."""

    @property
    def image(self) -> MetadataImage:
        """The newest image, with what is appended and not committed: the active controller decides by it.

        Changed states of partitions are in it only once they are committed: decisions read those from `cluster`.
        """

    @property
    def committed_image(self) -> MetadataImage:
        """The image of what is committed and applied; a standby has it too."""

    async def write(self, decide: Callable[[MetadataImage], RecordDecision]) -> Any:
        """Decide on the newest image, append the records and apply them at once; return the reply once they are committed.

        For writes that no decision on the cluster depends on. Raises TermEndedError, OverloadedError, and RefusedWriteError for an atomic
        decision with too many records.
        """

    async def read(self) -> MetadataImage:
        """Wait until every write that was answered before is applied, and return the committed image.

        Raises TermEndedError where this process is not the active controller.
        """
