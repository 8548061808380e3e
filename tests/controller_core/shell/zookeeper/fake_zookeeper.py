"""An in-memory ZooKeeper with faults on demand.

Znodes have versions and a czxid, sessions have ephemerals and watches that fire once, a transaction is done as a whole or not
at all. `FakeSession` has the methods of `ZooKeeperSession` that the shell calls. Every operation yields to the event loop once, and
those of one session are done in the order of their calls, as ZooKeeper guarantees.
"""

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum

from kafka_zookeeper.errors import ConnectionLostError, SessionLostError
from kafka_zookeeper.session import Node, SessionState
from kafka_zookeeper.watches import EventKind, WatchCallback, WatchEvent
from kafka_zookeeper.writes import (
    ANY_VERSION,
    Check,
    Committed,
    Create,
    Delete,
    MultiResult,
    Operation,
    Refused,
    RefusedReason,
    SetData,
    Unknown,
)


class Fault(Enum):
    """Result of a transaction or read."""

    DONE = "the connection is lost after it was done"
    NOT_DONE = "the connection is lost before it was done"
    READ_LOST = "a read fails"


@dataclass
class Znode:
    """One znode."""

    data: bytes | None
    czxid: int
    mzxid: int
    version: int = 0
    owner: int = 0


class _RefusedError(Exception):
    def __init__(self, reason: RefusedReason) -> None:
        super().__init__(reason)
        self.reason = reason


class FakeZooKeeper:
    """The server."""

    def __init__(self) -> None:
        self.znodes: dict[str, Znode] = {}
        self.zxid = 100
        self.lines: list[str] = []
        """Requests of all sessions, and their results."""
        self.faults: list[Fault | MultiResult] = []
        """Faults of the next transactions, one each; None for no fault."""
        self.before_writes: list[Callable[[], object]] = []
        """Called just before the next transactions, one each."""
        self.before_reads: list[tuple[str, Callable[[], object]]] = []
        """Called just before the next read of a path with this prefix."""
        self._watches: dict[tuple[str, str], list[tuple[FakeSession, WatchCallback]]] = {}
        self._sessions = 0

    def session(self) -> "FakeSession":
        """Open a session."""
        self._sessions += 1
        return FakeSession(self, 0x1000 + self._sessions)

    def at(self, path: str) -> Znode:
        """Return the znode at a path; it must exist."""
        return self.znodes[path]

    def children(self, path: str) -> list[str]:
        """Names of a znode's children."""
        start = f"{path.rstrip('/')}/"
        return sorted(
            name for znode in self.znodes if znode.startswith(start) and "/" not in (name := znode[len(start) :])
        )

    # Writes of other processes: synchronous, and not listed in `lines`.

    def put(self, path: str, data: bytes | None = None, owner: int = 0) -> None:
        """Write a znode, and create missing parents."""
        parent = path.rpartition("/")[0]
        if parent and parent not in self.znodes:
            self.put(parent)
        kind = SetData(path, data, ANY_VERSION) if path in self.znodes else Create(path, data, ephemeral=bool(owner))
        assert isinstance(self.apply([kind], owner), Committed)

    def drop(self, path: str) -> None:
        """Delete a znode and its descendants."""
        for name in self.children(path):
            self.drop(f"{path}/{name}")
        assert isinstance(self.apply([Delete(path, ANY_VERSION)], 0), Committed)

    def apply(self, operations: Sequence[Operation], owner: int) -> Committed | Refused:
        """Commit all operations or none."""
        staged, self.zxid = {path: copy(znode) for path, znode in self.znodes.items()}, self.zxid + 1
        events: list[tuple[str, EventKind]] = []
        results: list[str | int | None] = []
        before, self.znodes = self.znodes, staged
        for place, operation in enumerate(operations):
            try:
                results.append(self._apply_one(operation, owner, events))
            except _RefusedError as refused:
                self.znodes = before
                return Refused(place, refused.reason)
        self._fire(events)
        return Committed(tuple(results))

    def _apply_one(self, operation: Operation, owner: int, events: list[tuple[str, EventKind]]) -> str | int | None:
        znode = self.znodes.get(operation.path)
        if isinstance(operation, Create):
            return self._create(operation, owner, events)
        if znode is None:
            raise _RefusedError(RefusedReason.NO_NODE)
        if operation.version not in {ANY_VERSION, znode.version}:
            raise _RefusedError(RefusedReason.BAD_VERSION)
        match operation:
            case SetData():
                znode.data, znode.version, znode.mzxid = operation.data, znode.version + 1, self.zxid
                events.append((operation.path, EventKind.DATA_CHANGED))
                return znode.version
            case Delete():
                if self.children(operation.path):
                    raise _RefusedError(RefusedReason.NOT_EMPTY)
                del self.znodes[operation.path]
                events.append((operation.path, EventKind.DELETED))
            case Check():
                pass
        return None

    def _create(self, operation: Create, owner: int, events: list[tuple[str, EventKind]]) -> str:
        parent = operation.path.rpartition("/")[0]
        if operation.path in self.znodes:
            raise _RefusedError(RefusedReason.NODE_EXISTS)
        if parent and parent not in self.znodes:
            raise _RefusedError(RefusedReason.NO_NODE)
        znode = Znode(operation.data, self.zxid, self.zxid, owner=owner if operation.ephemeral else 0)
        self.znodes[operation.path] = znode
        events.append((operation.path, EventKind.CREATED))
        return operation.path

    def _fire(self, events: Sequence[tuple[str, EventKind]]) -> None:
        for path, kind in events:
            self._fire_one("data", path, kind)
            if kind is not EventKind.DATA_CHANGED:
                self._fire_one("children", path.rpartition("/")[0] or "/", EventKind.CHILDREN_CHANGED)
            if kind is EventKind.DELETED:
                self._fire_one("children", path, kind)

    def _fire_one(self, what: str, path: str, kind: EventKind) -> None:
        for _, callback in self._watches.pop((what, path), []):
            asyncio.get_running_loop().call_soon(callback, WatchEvent(kind, path))

    def arm(self, session: "FakeSession", what: str, path: str, callback: WatchCallback) -> None:
        """Set a watch; it stays until it fires."""
        self._watches.setdefault((what, path), []).append((session, callback))

    @property
    def watches(self) -> int:
        """Number of watches that are set."""
        return sum(map(len, self._watches.values()))

    def end(self, session: "FakeSession", *, lost: bool) -> None:
        """End a session, or only its connection: its watches fire and, if the session ends, its ephemerals are deleted."""
        for key, armed in list(self._watches.items()):
            self._watches[key] = [(owner, callback) for owner, callback in armed if owner is not session]
            for owner, callback in armed:
                if owner is session:
                    asyncio.get_running_loop().call_soon(callback, None)
        if lost:
            for path in [path for path, znode in self.znodes.items() if znode.owner == session.session_id]:
                self.drop(path)


class FakeSession:
    """One session, with the methods of `ZooKeeperSession` that the shell calls."""

    def __init__(self, server: FakeZooKeeper, session_id: int) -> None:
        self.server = server
        self.session_id = session_id
        self.state = SessionState.CONNECTED
        self.closed = False
        self._listeners: list[Callable[[SessionState], None]] = []

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call back at changes of state."""
        self._listeners.append(callback)

    def expire(self) -> None:
        """Expire the session."""
        self._enter(SessionState.LOST)

    def lose_connection(self) -> None:
        """Lose the connection and restore it: all watches are removed and their callbacks called."""
        self.server.end(self, lost=False)

    async def close(self) -> None:
        """End the session."""
        self.closed = True
        self._enter(SessionState.LOST)

    def _enter(self, state: SessionState) -> None:
        if self.state is SessionState.LOST:
            return
        self.state = state
        self.server.end(self, lost=True)
        for listener in self._listeners:
            listener(state)

    async def get(self, path: str, watch: WatchCallback | None = None) -> Node | None:
        """Read a znode."""
        await self._reads("get", path, watch)
        self._arm("data", path, watch)
        return self._node(path)

    async def children(self, path: str, watch: WatchCallback | None = None) -> list[str] | None:
        """Read the names of children; if there is no znode, its creation is watched."""
        await self._reads("children", path, watch)
        exists = path in self.server.znodes
        self._arm("children" if exists else "data", path, watch)
        return self.server.children(path) if exists else None

    async def exists(self, path: str, watch: WatchCallback | None = None) -> bool:
        """Return whether a znode exists."""
        return await self.get(path, watch) is not None

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        """Read many znodes."""
        await self._reads("get", " ".join(paths) or "nothing", None)
        return [self._node(path) for path in paths]

    async def multi_children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Read the names of many znodes' children."""
        await self._reads("children", " ".join(paths) or "nothing", None)
        return [self.server.children(path) if path in self.server.znodes else None for path in paths]

    async def multi(self, operations: Sequence[Operation]) -> MultiResult:
        """Commit all operations or none, or apply a fault."""
        await asyncio.sleep(0)
        server = self.server
        if server.before_writes:
            server.before_writes.pop(0)()
        if self.state is SessionState.LOST:
            return Unknown("the session is over")
        fault = server.faults.pop(0) if server.faults else None
        if isinstance(fault, Committed | Refused | Unknown):
            result: MultiResult = fault
        elif fault is Fault.NOT_DONE:
            result = Unknown("before it was done")
        else:
            result = server.apply(operations, self.session_id)
        server.lines += ["multi", *(f"  {operation_text(operation)}" for operation in operations)]
        if fault is Fault.DONE:
            server.lines.append(f"-> unknown, {_result_text(result, operations)}")
            return Unknown("after it was done")
        server.lines.append(f"-> {_result_text(result, operations)}")
        return result

    async def _reads(self, what: str, path: str, watch: WatchCallback | None) -> None:
        await asyncio.sleep(0)
        server = self.server
        for place, (prefix, call) in enumerate(server.before_reads):
            if path.startswith(prefix):
                del server.before_reads[place]
                call()
                break
        if self.state is SessionState.LOST:
            raise SessionLostError("the session is over")
        if server.faults[:1] == [Fault.READ_LOST]:
            server.faults.pop(0)
            raise ConnectionLostError("the connection broke again and again")
        server.lines.append(f"{what} {path}{' and watch' if watch else ''}")

    def _arm(self, what: str, path: str, watch: WatchCallback | None) -> None:
        if watch is not None:
            self.server.arm(self, what, path, watch)

    def _node(self, path: str) -> Node | None:
        znode = self.server.znodes.get(path)
        if znode is None:
            return None
        return Node(znode.data, znode.version, znode.czxid, znode.mzxid, znode.owner)


def operation_text(operation: Operation) -> str:
    """Print one operation."""
    version = "" if isinstance(operation, Create) else _version_text(operation.version)
    match operation:
        case Create():
            kind = " ephemeral" if operation.ephemeral else ""
            return f"create{kind} {operation.path} {data_text(operation.data)}"
        case SetData():
            return f"set {operation.path} {version} {data_text(operation.data)}"
        case Delete():
            return f"delete {operation.path} {version}"
        case Check():
            return f"check {operation.path} {version}"


def _version_text(version: int) -> str:
    return "any version" if version == ANY_VERSION else f"version {version}"


def data_text(data: bytes | None) -> str:
    """Print a znode's data."""
    return "null" if data is None else data.decode(errors="backslashreplace")


def _result_text(result: MultiResult, operations: Sequence[Operation]) -> str:
    match result:
        case Committed():
            return "done"
        case Refused():
            which = "all of it" if result.index < 0 else operation_text(operations[result.index]).split(" {")[0]
            return f"refused, {result.reason.value}: {which}"
        case Unknown():
            return "unknown, not done"
