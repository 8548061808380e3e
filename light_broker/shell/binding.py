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
        number = None if isinstance(error, socket.gaierror) else error.errno
        reason = str(error.strerror or error) if number is None else os.strerror(number)
        raise BindError(
            f"Failed to listen on {host or 'all addresses'}:{port}: {reason}. End the process that uses the port, or change {setting}."
        ) from error
