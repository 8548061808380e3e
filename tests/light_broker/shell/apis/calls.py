"""Calls of an API's handler as a client's request causes them: encoded, decoded, answered, encoded, decoded."""

from typing import Any

from kafka_log.files.partition_settings import PartitionSettings
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, codec
from kafka_wire.encoded_body import EncodedBody, Response
from kafka_wire.file_slice import FileResponse
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.core.metadata_view import MetadataView
from light_broker.core.partition import IsrRules
from light_broker.shell.apis.table import APIS
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import GroupCoordinators
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas.manager import ReplicaManager
from tests.light_broker.fixed_control import LISTENER, FixedControl
from tests.light_broker.hosting import bytes_of


def broker_with(view: MetadataView, file: dict[str, str] | None = None, **parts: Any) -> Broker:
    """Return broker 1 with some metadata and settings, and other parts where a test needs them."""
    control = FixedControl(view)
    logs = LogManager(
        [],
        LogManagerSettings(),
        cluster_id=view.cluster_id,
        node_id=1,
        partition_settings=lambda _: PartitionSettings(),
        on_failed_directory=lambda _: None,
        high_watermarks=dict,
    )
    replicas = ReplicaManager(1, logs, control, view=lambda: view, isr_rules=lambda _: IsrRules())
    fields: dict[str, Any] = {
        "logs": logs,
        "replicas": replicas,
        "producer_ids": ProducerIds(control),
        "fetch_sessions": FetchSessions(),
        "groups": GroupCoordinators(replicas, GroupSettings(), view=lambda: view),
    }
    return Broker(settings=Settings(1, file or {}), view=view, control=control, **(fields | parts))


async def call(broker: Broker, key: ApiKey, body: Body, *, version: int | None = None, **context: Any) -> Body | None:
    """Return the response to a request in a version, by default the latest; None: there is none."""
    api = APIS[key]
    version = api.versions[1] if version is None else version
    frame = codec.encode_request(key, version, 1, "test", body)
    _, request = codec.decode_request(frame)
    asking = RequestContext(LISTENER, "test", "127.0.0.1", 1, version, **context)
    answer = await api.handle(broker, asking, request)
    if answer is None:
        return None
    if isinstance(answer, EncodedBody):
        encoded = codec.response_header(key, version, 1) + b"".join(answer.pieces)
    elif api.encode is not None:
        encoded = whole(api.encode(version, 1, answer))
    else:
        encoded = codec.encode_response(key, version, 1, answer)
    return codec.decode_response(key, version, encoded)[1]


def whole(response: Response) -> bytes:
    """Return a response frame with what it has of files."""
    assert isinstance(response, bytes | FileResponse), response
    return response if isinstance(response, bytes) else b"".join(map(bytes_of, response.pieces))
