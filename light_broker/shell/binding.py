"""Errors of addresses that a process cannot listen on. Source: Kafka's SocketServer.openServerSocket."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager


class BindError(Exception):
    """An address that cannot be listened on; the message is a sentence with the address, the setting and what to do."""


@contextmanager
def naming_address(setting: str, host: str, port: int) -> Iterator[None]:
    """Raise BindError in place of the OSError with which the block fails to listen on an address of `setting`."""
    try:
        yield
    except OSError as error:
        # asyncio repeats the address in the text of its error.
        is_from_system = error.errno is not None and not isinstance(error, socket.gaierror)
        reason = os.strerror(error.errno) if is_from_system else str(error.strerror or error)
        raise BindError(
            f"Failed to listen on {host or 'all addresses'}:{port}: {reason}. End the process that uses the port, or change {setting}."
        ) from error
