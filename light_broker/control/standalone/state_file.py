"""File with the metadata of a standalone broker: it is replaced as a whole, and is on the disk before a change takes effect."""

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path

from kafka_log.errors import LogError, UnreadableFileError
from kafka_log.files.durable import make_folder, replace_file
from kafka_log.files.text_files import read_decoded
from kafka_log.format.names import META_PROPERTIES
from kafka_wire import ErrorCode
from kafka_wire.uuids import encode_uuid
from light_broker.control.port import ControlPlaneError
from light_broker.control.standalone.state import State, decode_state, encode_state

FILE_NAME = "standalone.json"

MAX_FILE_BYTES = 64 * 1024 * 1024
"""100,000 topics take 20 MB. A standalone broker is for far fewer. A change beyond it is refused, since the next start would refuse the file."""


class StateFileError(Exception):
    """The file cannot be used; the message is a sentence with the path and what to do."""


class StateFile:
    """The file, and its current content. Created by `open_state_file`."""

    def __init__(self, path: Path, state: State) -> None:
        self._path = path
        self.state = state

    def count_start(self) -> None:
        """Raise the broker epoch. Called with the locks of the folders, so that no other process writes the file. Raises StateFileError."""
        state = _read(self._path)
        if state is None or state.cluster_id != self.state.cluster_id:
            raise StateFileError(
                f"{self._path} was replaced or deleted by another process while this one started. Start again."
            )
        state = replace(state, broker_epoch=state.broker_epoch + 1)
        _write(self._path, state)
        self.state = state

    async def save(self, state: State) -> None:
        """Replace the content. Raises ControlPlaneError, after which the file has the content of before."""
        if state == self.state:
            return
        content = encode_state(state)
        if len(content) > MAX_FILE_BYTES:
            raise ControlPlaneError(
                ErrorCode.POLICY_VIOLATION,
                f"The metadata would take over {MAX_FILE_BYTES} bytes in {self._path}. Delete topics or ACLs.",
            )
        try:
            await asyncio.to_thread(replace_file, self._path, content)
        except LogError as error:
            raise ControlPlaneError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.state = state


def open_state_file(folder: Path, node_id: int) -> StateFile:
    """Read the file in a data folder, or create it in an empty one. Raises StateFileError.

    A folder that belongs to a cluster with another control plane is refused: its topics would not be known here.
    """
    path = folder / FILE_NAME
    state = _read(path)
    if state is None:
        if (folder / META_PROPERTIES).exists():
            raise StateFileError(
                f"{folder} belongs to a cluster with controllers: it has {META_PROPERTIES}, but no {FILE_NAME}. Start without "
                "--standalone, or set log.dirs to another folder."
            )
        state = State(encode_uuid(uuid.uuid4()), node_id)
        _write(path, state)
    if state.node_id != node_id:
        raise StateFileError(
            f"{path} belongs to node {state.node_id}, and this is node {node_id}. Set node.id to {state.node_id}, or log.dirs to "
            "another folder."
        )
    return StateFile(path, state)


def _write(path: Path, state: State) -> None:
    try:
        make_folder(path.parent)
        replace_file(path, encode_state(state))
    except LogError as error:
        raise StateFileError(f"{error}. Check log.dirs, the disk and the owner of {path.parent}.") from error


def _read(path: Path) -> State | None:
    """Return the content, None without the file. Raises StateFileError."""
    try:
        return read_decoded(path, decode_state, MAX_FILE_BYTES)
    except UnreadableFileError as error:
        if isinstance(error.__cause__, OSError):
            raise StateFileError(f"{error}. Check log.dirs and the owner of the file.") from error
        raise StateFileError(
            f"{error}. Restore the file from a backup; without it the topics of the folder are not known."
        ) from error
