"""Requests to brokers as dicts that a test can read: built by the plain twin, once the columns encode to the same bytes.

Every test of a request therefore checks the bytes that the controller sends, in every version that it uses.
"""

from controller_core.model import Cluster
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata
from controller_core.shell.brokers import requests
from controller_core.shell.brokers.requests import OwnAddress, StatesBody
from controller_core.zookeeper_mode.apis import CALLED
from kafka_wire import ApiKey, Body, codec
from tests.controller_core.shell.brokers import plain_requests

EPOCH = 102


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> Body:
    """Build a LeaderAndIsr request."""
    return checked(requests.leader_and_isr(cluster, send, own), plain_requests.leader_and_isr(cluster, send, own))


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> Body:
    """Build an UpdateMetadata request."""
    return checked(requests.update_metadata(cluster, send, own), plain_requests.update_metadata(cluster, send, own))


def checked(body: StatesBody, plain: Body) -> Body:
    """Return the plain twin, after checking that both encode to the same bytes in every version."""
    for version in range(CALLED[body.key].lowest, CALLED[body.key].highest + 1):
        assert plain_bytes(body.key, version, plain) == b"".join(body.to(EPOCH).parts(version))
    return plain


def plain_bytes(key: ApiKey, version: int, plain: Body) -> bytes:
    """Encode the plain twin."""
    old = key is ApiKey.LEADER_AND_ISR and version < plain_requests.RECOVERY_FROM
    fitting = plain_requests.without_recovery(plain) if old else plain
    return codec.encode(f"{key.message}Request", version, {**fitting, "broker_epoch": EPOCH})
