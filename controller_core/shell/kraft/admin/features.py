"""UpdateFeatures in KRaft mode, versions 0 to 2: all features of a request change or none does.

kraft.version is the quorum's: it is validated first and changed last, when the levels of the metadata are committed. Source:
FeatureControlManager.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from controller_core.metadata import feature_changes
from controller_core.rules.features import FeatureUpdate, UpgradeType
from controller_core.shell.kraft.port import MetadataController
from controller_core.shell.quorum.update_features import Levels, answer_update
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_node.context import RequestContext
from kafka_wire import Body, Failure


class UpdateKRaftVersion(Protocol):
    """Changes kraft.version in the quorum; returns why not."""

    async def __call__(self, level: int, upgrade_type: int, *, validate_only: bool) -> Failure | None:
        """Return once the change is committed."""


class FeatureApi:
    """The handler. `quorum` returns what its controllers support."""

    def __init__(
        self,
        controller: MetadataController,
        quorum: Callable[[], feature_changes.QuorumFeatures],
        kraft_version: UpdateKRaftVersion,
    ) -> None:
        self._controller = controller
        self._quorum = quorum
        self._update_kraft_version = kraft_version

    async def update(self, context: RequestContext, body: Body) -> Body:
        """Set levels of features."""
        return await answer_update(self._update, context, body)

    async def _update(self, updates: Levels, *, validate_only: bool) -> Failure | None:
        levels = dict(updates)
        kraft_version = levels.pop(KRAFT_VERSION, None)
        if kraft_version is not None and (refused := await self._refused(*kraft_version)) is not None:
            return refused
        wanted = [FeatureUpdate(name, level, _upgrade_type(kind)) for name, (level, kind) in levels.items()]
        decide = partial(
            feature_changes.update_features, quorum=self._quorum(), updates=wanted, validate_only=validate_only
        )
        failure: Failure | None = await self._controller.write(decide)
        if failure is not None or kraft_version is None or validate_only:
            return failure
        return await self._update_kraft_version(*kraft_version, validate_only=False)

    async def _refused(self, level: int, upgrade_type: int) -> Failure | None:
        """Return why kraft.version may not change to a level."""
        update = FeatureUpdate(KRAFT_VERSION, level, _upgrade_type(upgrade_type))
        if self._controller.is_active:  # Another process does not know what is supported; it refuses below.
            refused = feature_changes.refused_kraft_version(self._controller.image, self._quorum(), update)
            if refused is not None:
                return refused
        return await self._update_kraft_version(level, upgrade_type, validate_only=True)


def _upgrade_type(number: int) -> UpgradeType:
    """Return the type of a number; an unknown one is UNKNOWN (FeatureUpdate.UpgradeType.fromCode)."""
    return UpgradeType(number) if number in set(UpgradeType) else UpgradeType.UNKNOWN
