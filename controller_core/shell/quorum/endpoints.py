"""Members of a quorum in its settings: static voters, and the controllers of a new quorum.

Source: QuorumConfig, DynamicVoter and DynamicVoters of Kafka.
"""

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from kafka_node.configs import config_rules, setting_rules
from kafka_node.security.endpoints import MAX_PORT, Address, parse_address
from kafka_wire.uuids import decode_uuid, encode_uuid

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class InitialController:
    """A voter of a quorum that is being formatted. `directory_id` is the id of its metadata directory."""

    node_id: int
    address: Address
    directory_id: uuid.UUID

    def __str__(self) -> str:
        return f"{self.node_id}@{self.address}:{encode_uuid(self.directory_id)}"


def parse_voters(entries: Iterable[str]) -> dict[int, Address]:
    """Return the static voters by id, of entries ID@HOST:PORT. Raises SettingError."""
    voters: dict[int, Address] = {}
    for entry in entries:
        number, at, address = entry.partition("@")
        if not at or "@" in address:
            raise setting_rules.SettingError(f"{VOTERS}: {entry!r} is not ID@HOST:PORT")
        if not re.fullmatch(r"[+-]?[0-9]+", number):
            raise setting_rules.SettingError(f"{VOTERS}: the id {number!r} of {entry!r} is not a number")
        voters[int(number)] = parse_address(address, setting=VOTERS)
    return voters


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """Return the controllers of ID@HOST:PORT:DIRECTORY_ID entries, separated by commas, by their ids. Raises SettingError."""
    voters: dict[int, InitialController] = {}
    for entry in filter(None, config_rules.trim(text).split(",")):
        voter = _initial_controller(config_rules.trim(entry))
        if voter.node_id in voters:
            raise setting_rules.SettingError(f"Node id {voter.node_id} was specified more than once.")
        voters[voter.node_id] = voter
    if not voters:
        raise setting_rules.SettingError("No voters given.")
    return tuple(voters[node_id] for node_id in sorted(voters))


def _initial_controller(entry: str) -> InitialController:
    match = re.fullmatch(r"(\d{1,10})@(?:\[([^\]]*)\]|([^:\[]*)):(\d{1,5}):(.*)", entry, re.ASCII)
    if match is None:
        raise setting_rules.SettingError(f"The initial controller {entry!r} is not ID@HOST:PORT:DIRECTORY_ID.")
    port = int(match[4])
    if port > MAX_PORT:
        raise setting_rules.SettingError(f"Invalid port {port} in the initial controller {entry!r}.")
    return InitialController(
        int(match[1]), Address(match[2] if match[2] is not None else match[3], port), parse_uuid(match[5])
    )


def parse_uuid(text: str) -> uuid.UUID:
    """Return an id in Kafka's form (kafka_wire.uuids). Raises SettingError."""
    try:
        return decode_uuid(text)
    except ValueError as error:
        raise setting_rules.SettingError(f"{error}, as `steward random-uuid` prints it.") from None
