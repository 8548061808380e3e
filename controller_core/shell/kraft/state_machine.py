"""The controller of KRaft mode as the state machine of a quorum's node: what `steward quorum` runs on the metadata of a cluster."""

import asyncio
from collections.abc import Mapping
from random import SystemRandom

from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.admin.describe_configs import current_settings
from controller_core.shell.kraft.admin.security_table import SERVED as SECURITY_SERVED
from controller_core.shell.kraft.admin.topics_table import SERVED as TOPICS_SERVED
from controller_core.shell.kraft.admin.topics_table import topic_handlers
from controller_core.shell.kraft.broker_apis import SERVED, broker_handlers
from controller_core.shell.kraft.controller import Identity, KRaftController
from controller_core.shell.kraft.features import listed_features
from controller_core.shell.kraft.metrics import KRaftMetrics
from controller_core.shell.kraft.registrar import Registrar
from controller_core.shell.kraft.security import Security
from controller_core.shell.kraft.snapshots import Snapshots
from controller_core.shell.kraft.upkeep import Upkeep
from controller_core.shell.quorum import directories, state_machine
from controller_core.shell.quorum.settings import QuorumSettings
from kafka_log.format.names import BOOTSTRAP_CHECKPOINT
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import ConfigResource
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import MetadataRecord, ResourceType
from kafka_node.describe_configs import CLUSTER_DEFAULT
from kafka_node.versions import BrokerVersions
from kafka_wire import ApiKey, schema
from kafka_wire.failures import WireError
from kafka_wire.records import decode_batches


class KRaftStateMachine:
    """Implements `shell.quorum.state_machine.StateMachine`."""

    def __init__(self, place: state_machine.Place) -> None:
        """Make the controller of a process. Raises StartError for a bootstrap.checkpoint that cannot be read."""
        self._driver = place.driver
        identity = Identity(
            node_id=place.settings.node_id,
            cluster_id=str(place.identity.cluster_id),
            endpoints=place.endpoints,
            bootstrap=read_bootstrap(place.settings),
        )
        self.controller = KRaftController(
            place.driver,
            identity,
            place.settings.controller,
            place.driver.listeners.update,
            KRaftMetrics(place.registry),
        )
        self._file = place.settings.values
        self._change_settings = place.change_settings
        self._own_configs: tuple[object, ...] = (None, None)
        self.controller.on_advanced.append(self._follow_settings)
        self._upkeep = Upkeep(self.controller, place.settings.controller, place.settings.log.max_idle_interval_ms)
        first = place.settings.controller_listener_names[0]
        self._registrar = Registrar(place.driver, self.controller, first, place.members)
        self._registering: asyncio.Task[None] | None = None
        self._snapshots = Snapshots(place.driver, self.controller, place.settings.log)
        self.security = Security(place.driver, self.controller, place.settings)
        self.guard = self.security.guard
        self.scram_users = self.security.scram_users
        self.handlers: Mapping[ApiKey, RequestHandler] = {
            **broker_handlers(self.controller),
            **self.security.handlers,
            **topic_handlers(self.controller, self.guard, SystemRandom(), place.settings.values),
        }
        self.served: Mapping[ApiKey, schema.Versions] = {**SERVED, **SECURITY_SERVED, **TOPICS_SERVED}

    def is_active(self) -> bool:
        """Whether this process is the active controller."""
        return self.controller.is_active

    def features(self) -> BrokerVersions:
        """Return what ApiVersions lists."""
        return listed_features(self.controller.committed, self._driver.kraft_version)

    def update_metrics(self) -> None:
        """Compute the gauges."""
        node = self._driver.node
        high_watermark, leader_id = (0, None) if node is None else (node.log.high_watermark, node.leader_id)
        self.controller.update_metrics(high_watermark, leader_id)

    def _follow_settings(self, _size_bytes: int) -> None:
        """Apply the dynamic configs of all nodes and of this one, once they have changed."""
        image = self.controller.committed_image
        names = CLUSTER_DEFAULT, str(self._file.node_id)
        configs = tuple(image.configs.get(ConfigResource(ResourceType.BROKER, name)) for name in names)
        if (
            configs == self._own_configs
        ):  # Mostly the same objects: an image shares with the one before what has not changed.
            return
        self._own_configs = configs
        self._change_settings(current_settings(self._file, image))

    def start(self) -> None:
        """Begin to apply the log."""
        self._driver.listeners.register(self.controller.follower)
        self._registering = asyncio.create_task(self._registrar.run(), name="register this controller")

    async def close(self) -> None:
        """End all tasks."""
        self._driver.listeners.unregister(self.controller.follower)
        self._upkeep.end()
        self.security.close()
        if self._registering is not None:
            self._registering.cancel()
        await self._snapshots.close()


def read_bootstrap(settings: QuorumSettings) -> tuple[MetadataRecord, ...]:
    """Return the first records of a new cluster; none without the file, which only the first active controller needs. Raises StartError."""
    path = settings.metadata_log_directory / BOOTSTRAP_CHECKPOINT
    try:
        data = path.read_bytes()
        return tuple(
            decode_record(record.value or b"", record.offset)
            for batch in decode_batches(data)
            if not batch.header.is_control
            for record in batch.records
        )
    except FileNotFoundError:
        return ()
    except (OSError, MetadataError, WireError) as error:
        raise directories.StartError(f"{path} cannot be read: {error} Format the directory again.") from error
