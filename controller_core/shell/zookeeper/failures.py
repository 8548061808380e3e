"""ZooKeeper's errors as the store's: what runs within a term reports errors that the controller's loop knows."""

from collections.abc import Iterator
from contextlib import contextmanager

from controller_core.shell.store import StoreError
from kafka_zookeeper.errors import ZooKeeperError


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise StoreError for a ZooKeeperError."""
    try:
        yield
    except ZooKeeperError as error:
        raise StoreError(str(error)) from error
