"""Golden script of transactions: golden/multi.txt contains the requests and their outcomes."""

from pathlib import Path

import pytest

from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.writes import Check, Committed, Create, Delete, MultiResult, Operation, Refused, SetData
from tests.golden_scripts import assert_golden, golden_text

pytestmark = pytest.mark.zookeeper

SCRIPT = Path(__file__).parent / "golden" / "multi.txt"
RULE = "----"


def _data(text: str) -> bytes | None:
    return None if text == "null" else text.encode()


def _operation(line: str) -> Operation:
    match line.split(" "):
        case ["create", path, data, *flags]:
            return Create(path, _data(data), "ephemeral" in flags, "sequential" in flags)
        case ["set", path, version, data]:
            return SetData(path, _data(data), int(version))
        case ["delete", path, version]:
            return Delete(path, int(version))
        case ["check", path, version]:
            return Check(path, int(version))
        case _:
            raise ValueError(line)


def _described(result: MultiResult) -> list[str]:
    match result:
        case Committed(results):
            return ["committed " + " ".join("-" if result is None else str(result) for result in results)]
        case Refused(index, reason, _):
            return [f"refused {index} {reason.value}"]
        case _:
            return ["unknown"]


async def _tree(session: ZooKeeperSession, path: str = "/") -> list[str]:
    node = await session.get(path)
    assert node
    text = "null" if node.data is None else node.data.decode()
    lines = (
        [] if path == "/" else [f"{path} {text} version {node.version}{' ephemeral' if node.ephemeral_owner else ''}"]
    )
    for name in await session.children(path) or []:
        lines += await _tree(session, f"{path.rstrip('/')}/{name}")
    return lines


async def _played(session: ZooKeeperSession, block: str) -> str:
    """Return a block with the actual instead of the expected outcome."""
    requests = block.split(f"\n{RULE}", maxsplit=1)[0].split("\n")
    commands = [line for line in requests if line and not line.startswith("#")]
    if not commands:
        return block
    outcome = (
        await _tree(session)
        if commands == ["tree"]
        else _described(await session.multi([_operation(line) for line in commands]))
    )
    return "\n".join([*requests, RULE, *outcome])


async def test_golden_script_of_transactions(session: ZooKeeperSession):
    """Protocol notes, Z10, Z11 and Z80: takeover, fence, partial failure, deletion from the leaves up."""
    blocks = golden_text(SCRIPT).strip("\n").split("\n\n")

    played = "\n\n".join([await _played(session, block) for block in blocks]) + "\n"

    assert_golden(SCRIPT, played)
