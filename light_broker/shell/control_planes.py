"""Choice of the control plane by the settings: standalone, ZooKeeper mode or KRaft mode.

A process loads only the code of its own mode, by imports within functions: ZooKeeper's needs kazoo, KRaft's the records of the metadata log, and a
broker is to start within a second.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from kafka_log.files.text_files import read_meta_properties
from kafka_log.format.text_files import META_PROPERTIES_VERSION
from kafka_node.authorization.table import Table
from kafka_wire import ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.kraft.options import KRaftOptions
from light_broker.control.port import ControlPlane, ControlPlaneError
from light_broker.control.standalone.control import StandaloneControl
from light_broker.control.standalone.state_file import StateFile, open_state_file
from light_broker.control.zookeeper.options import ZooKeeperOptions
from light_broker.control.zookeeper.rights import NEEDS as ZOOKEEPER_NEEDS
from light_broker.core.metadata_view import BrokerView
from light_broker.shell.broker import Broker
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.settings_reading import BrokerSettings

ZOOKEEPER_META_VERSION = 0
"""Version of meta.properties in ZooKeeper mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The process, as a control plane uses it. The functions are called once the broker and its logs exist."""

    settings: BrokerSettings
    own_view: Callable[[], BrokerView]
    broker: Callable[[], Broker]
    previous_epoch: Callable[[], int | None]
    to_brokers: NodeSettings
    to_controllers: NodeSettings | None


@dataclass(frozen=True, slots=True)
class OpenedControl:
    """A control plane, and what differs by mode."""

    control: ControlPlane
    needs: Table
    """Rights that requests of its controllers need."""
    meta_version: int = META_PROPERTIES_VERSION
    """Version of meta.properties in new directories."""
    state_file: StateFile | None = None
    """Of a standalone broker."""


async def open_control(host: Host) -> OpenedControl:
    """Return the control plane of the settings. Raises StateFileError and ControlPlaneError."""
    if host.settings.kraft is not None:
        return OpenedControl(_kraft(host, host.settings.kraft), {})
    if host.settings.zookeeper is not None:
        control = await _zookeeper(host, host.settings.zookeeper)
        return OpenedControl(control, ZOOKEEPER_NEEDS, ZOOKEEPER_META_VERSION)
    state_file = open_state_file(host.settings.log_directories[0], host.settings.values.node_id)
    standalone = StandaloneControl(
        state_file,
        host.own_view,
        lambda: host.broker().settings,
        lambda context: host.broker().may(context),
        has_authorizer=host.settings.authorizer is not None,
    )
    return OpenedControl(standalone, {}, state_file=state_file)


async def _zookeeper(host: Host, options: ZooKeeperOptions) -> ControlPlane:
    from light_broker.control.zookeeper.control import Parts, ZooKeeperControl  # noqa: PLC0415

    settings = host.settings
    control = await ZooKeeperControl.open(options, settings.values.node_id)
    control.connect(
        Parts(
            broker=host.own_view,
            settings=lambda: host.broker().settings,
            judge=lambda context: host.broker().may(context),
            listener=settings.inter_broker_listener,
            protocols={listener.listener: listener.security_protocol for listener in settings.advertised_listeners},
            node_settings=host.to_brokers,
        )
    )
    return control


def _kraft(host: Host, options: KRaftOptions) -> ControlPlane:
    from light_broker.control.kraft.control import KRaftControl, Parts  # noqa: PLC0415

    settings = host.settings
    assert host.to_controllers is not None, "a broker in KRaft mode has controllers"

    def logs() -> LogManager:
        return host.broker().logs

    return KRaftControl(
        options,
        _cluster_id(settings),
        settings.values.node_id,
        Parts(
            broker=host.own_view,
            settings=lambda: host.broker().settings,
            has_authorizer=settings.authorizer is not None,
            protocols={listener.listener: listener.security_protocol for listener in settings.advertised_listeners},
            node_settings=host.to_controllers,
            directory_ids=lambda: list(_online_directories(logs())),
            previous_epoch=host.previous_epoch,
            logs=lambda: [(partition, logs().topic_id(partition)) for partition, _, _ in logs().online_logs()],
            mark_stray=lambda partition: logs().mark_stray(partition),
            directory_id=lambda partition: _directory_id(logs(), partition),
        ),
    )


def _online_directories(logs: LogManager) -> Iterator[UUID]:
    for directory in logs.directories:
        if directory.is_online() and directory.directory_id is not None:
            yield directory.directory_id


def _directory_id(logs: LogManager, partition: TopicPartition) -> UUID | None:
    directory = logs.directory(partition)
    return directory.directory_id if directory is not None and directory.is_online() else None


def _cluster_id(settings: BrokerSettings) -> str:
    """Return the id of the cluster that the directories were formatted for. Raises ControlPlaneError without one, as Kafka's start ends."""
    for folder in settings.log_directories:
        properties = read_meta_properties(folder)
        if properties is not None and properties.cluster_id is not None:
            return properties.cluster_id
    folders = ", ".join(map(str, settings.log_directories))
    raise ControlPlaneError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"No meta.properties found in {folders}: a broker of a KRaft cluster needs formatted log directories. Run "
        "`steward format --cluster-id ID --config FILE` with the id that the controllers were formatted with.",
    )
