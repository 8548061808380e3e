"""Keeps what is known of the cluster's ACLs as ZooKeeper has it, and changes them there, during one session.

At the start every ACL is read. After that brokers, and we, leave a notice for each change: what it names is read again, never
guessed from the notice. A notice that cannot be read is logged once, and everything is read again.

A change is one transaction of the znode, at the version that was read, and its notice, so no broker misses one; refused because
somebody else was faster, it is made again on what is there then. An ACL znode that cannot be read locks what it guards to all but
super users: a torn document must not open anything.

Source: AclAuthorizer.updateResourceAcls, ZkNodeChangeNotificationListener. Leaves out which notices are old (purging).
"""

# MERGED controller_core.shell.zookeeper.acls: """The model's ACLs to and from what stands in znodes. Leaves out reading and writing them (keeper)."""
# MERGED controller_core.shell.zookeeper.acls: """Deletes notices of changed ACLs once they are old: without a broker that has an authorizer nobody else does.
# MERGED controller_core.shell.zookeeper.acls:
# MERGED controller_core.shell.zookeeper.acls: A notice is old when this process has seen it for a quarter of an hour. Kafka takes ZooKeeper's time of its creation and the broker's own
# MERGED controller_core.shell.zookeeper.acls: clock; two clocks that disagree would have us delete what somebody has not read yet.
# MERGED controller_core.shell.zookeeper.acls:
# MERGED controller_core.shell.zookeeper.acls: Source: ZkNodeChangeNotificationListener.purgeObsoleteNotifications. Leaves out reading notices (keeper).
# MERGED controller_core.shell.zookeeper.acls: """
import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable

from controller_core.shell.store import AclCache, UpdateEntries
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS, Attempt, optimistic_update
from controller_core.shell.zookeeper.watched_reads import ArmedReads
from kafka_node.authorization import acl
from kafka_node.authorization.acls import Acls, Entries
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import formats, paths
from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.formats import AclEntry, AclResource, FormatError
from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.writes import ANY_VERSION, Committed, Create, Delete, MultiResult, Refused, RefusedReason, SetData
from kafka_zookeeper.writes import Operation as Write

_OPERATIONS = {each.label: each for each in acl.Operation}
_PERMISSIONS = {each.label: each for each in acl.Permission}
_TYPES = {each.label: each for each in acl.ResourceType}

TYPES = tuple(each for each in acl.ResourceType if each > acl.ResourceType.ANY)
"""The types that have ACLs."""


def is_prefixed(pattern: acl.Pattern) -> bool:
    """Tell which of the two trees a pattern is in."""
    return pattern.pattern_type is acl.PatternType.PREFIXED


def path_of(pattern: acl.Pattern) -> str:
    """Name a pattern's znode; ValueError for a name that no znode can have."""
    return paths.acls(pattern.resource_type.label, pattern.name, prefixed=is_prefixed(pattern))


def parent_of(pattern: acl.Pattern) -> str:
    """Name the znode above a pattern's."""
    return paths.acls_of_type(pattern.resource_type.label, prefixed=is_prefixed(pattern))


def read_entries(pattern: acl.Pattern, node: Node | None) -> Entries:
    """Read a pattern's entries; FormatError where nobody can tell what they are."""
    found = formats.decode_acls(path_of(pattern), None if node is None else node.data)
    return frozenset(
        acl.Entry(each.principal, each.host, _OPERATIONS[each.operation], _PERMISSIONS[each.permission])
        for each in found
    )


def write_entries(entries: Iterable[acl.Entry]) -> bytes:
    """Write entries."""
    return formats.encode_acls(
        AclEntry(each.principal, each.permission.label, each.operation.label, each.host) for each in entries
    )


def write_change(pattern: acl.Pattern) -> bytes:
    """Write the notice that a pattern's ACLs have changed."""
    return formats.encode_acl_change(AclResource(pattern.resource_type.label, pattern.name, pattern.pattern_type.name))


def read_change(name: str, node: Node, *, prefixed: bool) -> acl.Pattern:
    """Read whose ACLs have changed; FormatError."""
    decode = formats.decode_extended_acl_change if prefixed else formats.decode_acl_change
    found = decode(name, node.data)
    return acl.Pattern(_TYPES[found.resource_type], found.name, acl.PatternType[found.pattern_type])


MAX_AGE_S = 15 * 60
"""As long as brokers keep them (changeExpirationMs): whoever reads slower than that reads everything anew."""
MAX_PURGED_AT_ONCE = 100
"""Notices deleted at one look, a millisecond or so each: changes of ACLs wait meanwhile."""

Notice = tuple[bool, str]
"""Whether it is about prefixed patterns, and its name."""


class Purging:
    """What has been seen since when; `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[Notice, float] = {}

    def old_among(self, notices: Collection[Notice]) -> list[Notice]:
        """Tell which of the present notices are to go now, the oldest first; those that are gone are forgotten."""
        now = self._clock()
        self._since = {notice: self._since.get(notice, now) for notice in notices}
        old = [notice for notice, since in self._since.items() if now - since > MAX_AGE_S]
        return sorted(old, key=lambda notice: notice[1])[:MAX_PURGED_AT_ONCE]

    async def purge(self, session: ZooKeeperSession, notices: Collection[Notice]) -> None:
        """Delete what is old. That one is gone already, or not deleted, is no matter: the next look tries again."""
        for prefixed, name in self.old_among(notices):
            await session.multi([Delete(paths.child(paths.acl_changes(prefixed=prefixed), name), ANY_VERSION)])


log = logging.getLogger(__name__)

PAUSE_S = 0.1
"""Pause before it is made anew, and before a look that failed is repeated."""

LOCKED: Entries = frozenset({acl.Entry(acl.WILDCARD_PRINCIPAL, acl.WILDCARD, acl.Operation.ALL, acl.Permission.DENY)})
"""What an unreadable znode stands for."""

RACES = {RefusedReason.BAD_VERSION, RefusedReason.NO_NODE, RefusedReason.NODE_EXISTS}
"""Refusals that a second look mends."""


class AclKeeper:
    """The ACLs during one session; `follow` is to run as long as it lasts. Implements `metadata_stores.AclStore`."""

    def __init__(self, session: ZooKeeperSession, known: AclCache, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self.known = known
        self._purging = Purging(clock)
        self._turn = asyncio.Lock()
        """What is read later is newer: reads and changes take turns."""
        self._notices: set[tuple[bool, str]] | None = None
        self._complained: set[tuple[str, int]] = set()

    async def follow(self) -> None:
        """Read all, then whatever changes, for ever."""
        changed = asyncio.Event()
        reads = ArmedReads(self._session, changed.set)
        while True:
            changed.clear()
            try:
                async with self._turn:
                    await self._look(reads)
            except ZooKeeperError as error:
                log.warning("ACLs cannot be read at the moment", extra={"why": str(error)})
                await asyncio.sleep(PAUSE_S)
                continue
            await changed.wait()

    async def change(self, pattern: acl.Pattern, update: UpdateEntries) -> Failure | None:
        """Replace a pattern's entries by what `update` makes of them; None when that is written, or was so already."""
        try:
            async with self._turn:
                return await self._change(pattern, update)
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"ACLs of {pattern.name} may be changed or not: {error}")
        except (ValueError, FormatError) as error:
            return Failure(ErrorCode.INVALID_REQUEST, str(error))

    async def _change(self, pattern: acl.Pattern, update: UpdateEntries) -> Failure | None:
        path = path_of(pattern)

        async def attempt() -> Attempt[Entries]:
            node = await self._session.get(path)
            entries = read_entries(pattern, node)
            wanted = update(entries)
            return Attempt([] if wanted == entries else [_write(path, node, wanted), _notice(pattern)], wanted)

        async def is_retried(ended: MultiResult) -> bool:
            if not isinstance(ended, Refused):
                return True  # What is read next tells whether it was written.
            if ended.reason in RACES:
                await self._make_parents([pattern])
            return ended.reason in RACES

        wanted, ended = await optimistic_update(self._session, attempt, is_retried, PAUSE_S)
        if isinstance(ended, Committed):
            self.known.acls.put(pattern, wanted)
            return None
        if isinstance(ended, Refused) and ended.reason not in RACES:
            words = f"ACLs of {pattern.name} cannot be written: {ended.reason.value} {ended.detail}"
            return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words.strip())
        words = f"Failed to update ACLs for {pattern} after trying a maximum of {MAX_ATTEMPTS} times"
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words)

    async def _make_parents(self, patterns: Iterable[acl.Pattern]) -> None:
        for path in {parent_of(each) for each in patterns} | {paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES}:
            await self._session.ensure_path(path)

    async def _look(self, reads: ArmedReads) -> None:
        if self._notices is None:
            kinds = (acl.PatternType.LITERAL, acl.PatternType.PREFIXED)
            await self._make_parents(acl.Pattern(each, "", kind) for each in TYPES for kind in kinds)
        notices = {
            (prefixed, name)
            for prefixed in (False, True)
            for name in await reads.children(paths.acl_changes(prefixed=prefixed)) or []
            if name.startswith(paths.ACL_CHANGE_NAME)
        }
        named = None if self._notices is None else await self._named(notices - self._notices)
        if named is None:
            await self._read_all()
        else:
            await self._read(named)
        self._notices = notices
        self.known.loaded.set()
        await self._purging.purge(self._session, notices)

    async def _named(self, fresh: Collection[tuple[bool, str]]) -> list[acl.Pattern] | None:
        """Tell which patterns notices name; None: one cannot be read, and so all are to be looked at."""
        order = sorted(fresh)
        nodes = await self._session.multi_get(
            [paths.child(paths.acl_changes(prefixed=prefixed), name) for prefixed, name in order]
        )
        named: dict[acl.Pattern, None] | None = {}
        for (prefixed, name), node in zip(order, nodes, strict=True):
            try:
                # One that is gone again was old: it was put there and deleted while we did not look.
                found = None if node is None else read_change(name, node, prefixed=prefixed)
            except FormatError as error:
                log.error("a notice of changed ACLs cannot be read, so all are read", extra={"why": str(error)})
                found = None
            if found is None:
                named = None
            elif named is not None:
                named[found] = None
        return None if named is None else list(named)

    async def _read_all(self) -> None:
        kinds = [(each, kind) for each in TYPES for kind in (acl.PatternType.LITERAL, acl.PatternType.PREFIXED)]
        names = await self._session.multi_children([parent_of(acl.Pattern(each, "", kind)) for each, kind in kinds])
        patterns = [
            acl.Pattern(each, name, kind)
            for (each, kind), found in zip(kinds, names, strict=True)
            for name in found or []
        ]
        read = await self._entries(patterns)
        self.known.acls = Acls(read)
        log.info("read the ACLs", extra={"resources": len(read), "acls": sum(map(len, read.values()))})

    async def _read(self, patterns: Collection[acl.Pattern]) -> None:
        for pattern, entries in (await self._entries(patterns)).items():
            self.known.acls.put(pattern, entries)

    async def _entries(self, patterns: Collection[acl.Pattern]) -> dict[acl.Pattern, Entries]:
        nodes = await self._session.multi_get([path_of(pattern) for pattern in patterns])
        return {pattern: self._judged(pattern, node) for pattern, node in zip(patterns, nodes, strict=True)}

    def _judged(self, pattern: acl.Pattern, node: Node | None) -> Entries:
        try:
            return read_entries(pattern, node)
        except FormatError as error:
            key = (error.path, 0 if node is None else node.mzxid)
            if key not in self._complained:
                self._complained.add(key)
                log.error("ACLs cannot be read: what they guard is locked", extra={"why": str(error)})
            return LOCKED


def _write(path: str, node: Node | None, wanted: Entries) -> Write:
    if node is None:
        return Create(path, write_entries(wanted))
    return SetData(path, write_entries(wanted), node.version) if wanted else Delete(path, node.version)


def _notice(pattern: acl.Pattern) -> Write:
    parent = paths.acl_changes(prefixed=pattern.pattern_type is acl.PatternType.PREFIXED)
    return Create(paths.child(parent, paths.ACL_CHANGE_NAME), write_change(pattern), sequential=True)
