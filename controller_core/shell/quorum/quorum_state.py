"""The file quorum-state: a voter's epoch, its vote and the known leader.

It is on the disk before any answer that depends on it, so that a restarted voter never votes twice in an epoch (Q2, Q3). Version 0 is
written at kraft.version 0, version 1 at kraft.version 1. A file that cannot be read stops the start (ADR 26). Source: Kafka's
FileQuorumStateStore and QuorumStateData.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_log.errors import UnreadableFileError
from kafka_log.files.durable import replace_file
from kafka_log.format.names import QUORUM_STATE
from kafka_wire.uuids import decode_uuid, encode_uuid

LOWEST_VERSION = 0
HIGHEST_VERSION = 1

MAX_INT32 = 2**31 - 1

_NONE = -1
"""Written for an unknown leader and for no vote."""
_NO_DIRECTORY = uuid.UUID(int=0)

WHAT_TO_DO = (
    "The file has this voter's vote; without it, the voter could vote twice in an epoch and two leaders be elected. "
    "Restore the file from a backup that is certainly not older than the last vote, or remove this voter from the quorum, format an empty folder "
    "and add it again. If no election took place since the file was damaged, delete it: the epoch is then taken from the log."
)


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Contents of quorum-state; None means an unknown leader, or no vote."""

    leader_epoch: int
    leader_id: int | None = None
    voted_id: int | None = None
    voted_directory_id: uuid.UUID | None = None
    """From version 1 on."""
    voters: tuple[int, ...] = ()
    """Ids of static voters; only in version 0."""


def read_quorum_state(folder: Path) -> QuorumState | None:
    """Return the state in the log's folder, None without the file. Raises UnreadableFileError, whose text has what to do."""
    path = folder / QUORUM_STATE
    try:
        return decode_quorum_state(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, UnreadableFileError) as error:
        raise UnreadableFileError(f"Failed to read {path}: {error}. {WHAT_TO_DO}") from None


def write_quorum_state(folder: Path, state: QuorumState, version: int) -> None:
    """Replace the state. When it returns, the state is on the disk. Raises LogWriteError and FlushFailedError."""
    replace_file(folder / QUORUM_STATE, encode_quorum_state(state, version))


def encode_quorum_state(state: QuorumState, version: int) -> bytes:
    """Return the file's content; raises ValueError for a version that lacks a field of the state."""
    leader = _NONE if state.leader_id is None else state.leader_id
    common = {
        "leaderId": leader,
        "leaderEpoch": state.leader_epoch,
        "votedId": _NONE if state.voted_id is None else state.voted_id,
    }
    if version == 0:
        fields: dict[str, object] = {
            "clusterId": "",
            **common,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in state.voters],
        }
    elif version == 1:
        fields = {**common, "votedDirectoryId": encode_uuid(state.voted_directory_id or _NO_DIRECTORY)}
    else:
        raise ValueError(f"Version {version} of quorum-state is not supported.")
    return json.dumps({**fields, "data_version": version}, separators=(",", ":")).encode()


def decode_quorum_state(content: bytes) -> QuorumState:
    """Return the state in a file's content; raises UnreadableFileError."""
    try:
        fields = json.loads(content)
    except ValueError:
        raise UnreadableFileError(
            "it is empty" if not content.strip() else "it is no JSON document, perhaps cut short"
        ) from None
    if not isinstance(fields, dict):
        raise UnreadableFileError("it is no JSON object")
    version = _integer(fields, "data_version")
    if not LOWEST_VERSION <= version <= HIGHEST_VERSION:
        raise UnreadableFileError(
            f"data_version {version} is not between {LOWEST_VERSION} and {HIGHEST_VERSION}; a newer program wrote it"
        )
    epoch, leader, voted = (_integer(fields, name) for name in ("leaderEpoch", "leaderId", "votedId"))
    if epoch < 0:
        raise UnreadableFileError(f"leaderEpoch {epoch} is negative")
    return QuorumState(
        leader_epoch=epoch,
        leader_id=None if leader == _NONE else leader,
        voted_id=None if voted == _NONE else voted,
        voted_directory_id=_voted_directory(fields, voted) if version > 0 else None,
        voters=_voters(fields) if version == 0 else (),
    )


def _integer(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INT32:
        raise UnreadableFileError(
            f"{name} is missing" if value is None else f"{name} {value!r} is no number of 32 bits"
        )
    return value


def _voted_directory(fields: Mapping[str, Any], voted: int) -> uuid.UUID | None:
    text = fields.get("votedDirectoryId")
    if not isinstance(text, str):
        raise UnreadableFileError("votedDirectoryId is missing")
    try:
        directory = decode_uuid(text)
    except ValueError as error:
        raise UnreadableFileError(f"votedDirectoryId {error}") from None
    return None if voted == _NONE or directory == _NO_DIRECTORY else directory


def _voters(fields: Mapping[str, Any]) -> tuple[int, ...]:
    voters = fields.get("currentVoters")
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise UnreadableFileError("currentVoters is no list of voters")
    return tuple(_integer(voter, "voterId") for voter in voters)
