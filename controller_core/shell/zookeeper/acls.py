"""ACLs in ZooKeeper: read, followed and changed during one session.

When a session begins all ACLs are read. After that every process that changes ACLs writes a notification with the pattern's name, and
the pattern's znode is read again. If a notification cannot be decoded, this is logged once and all ACLs are read again.

A change writes the znode, at the version that was read, and its notification in one transaction, so no broker misses one. If another
process changed the znode in between, the update is computed again from the new data. A znode that cannot be decoded denies its
resource to all principals except super users: a corrupt document must not grant access.

Notifications are deleted when this process has seen them for a quarter of an hour: without brokers that have an authorizer no other
process deletes them. Kafka compares ZooKeeper's creation time with the broker's clock; if the two clocks differed, a notification
could be deleted before every process has read it.

Source: AclAuthorizer.updateResourceAcls, ZkNodeChangeNotificationListener (purgeObsoleteNotifications).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable

from controller_core.shell.store import AclCache, UpdateEntries
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS, Attempt, optimistic_update
from controller_core.shell.zookeeper.watched_reads import WatchedReads
from kafka_node.authorization import acl
from kafka_node.authorization.acls import Acls, Entries
from kafka_wire import ErrorCode, Failure
from kafka_zookeeper import formats, paths
from kafka_zookeeper.session import Node, ZooKeeperError, ZooKeeperSession
from kafka_zookeeper.writes import ANY_VERSION, Committed, Create, Delete, MultiResult, Refused, RefusedReason, SetData
from kafka_zookeeper.writes import Operation as Write

log = logging.getLogger(__name__)
MAX_AGE_S = 15 * 60
"""Age at which brokers delete notifications (changeExpirationMs); a process that was disconnected for longer reads all ACLs again."""
MAX_PURGED_AT_ONCE = 100
"""Notifications deleted after one read, about a millisecond each: changes of ACLs wait during that time."""
PAUSE_S = 0.1
"""Pause before a change or a failed read is repeated."""
RACES = {RefusedReason.BAD_VERSION, RefusedReason.NO_NODE, RefusedReason.NODE_EXISTS}
"""Refusals after which the update is computed again from the current data."""
_TYPES = {resource_type.label: resource_type for resource_type in acl.ResourceType}
Notification = tuple[bool, str]
"""Whether it is in the tree of prefixed patterns, and its name."""


class ZooKeeperAcls:
    """The ACLs in one session; `follow` has to run for as long as it lasts. Implements `shell.store.AclStore`."""

    def __init__(self, session: ZooKeeperSession, known: AclCache, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self.known = known
        self._purger = NotificationPurger(clock)
        self._lock = asyncio.Lock()
        """Held by each read and each change, so that an older read never replaces a newer one."""
        self._seen: set[Notification] | None = None
        """Notifications of the last read; None before the first one."""
        self._logged: set[tuple[str, int]] = set()
        """Path and version (mzxid) of znodes that could not be decoded."""

    async def follow(self) -> None:
        """Read all ACLs, then each changed one, until cancelled."""
        changed = asyncio.Event()
        reads = WatchedReads(self._session, changed.set)
        while True:
            changed.clear()
            try:
                async with self._lock:
                    await self._refresh(reads)
            except ZooKeeperError as error:
                log.warning("Failed to read ACLs; retrying", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)
                continue
            await changed.wait()

    async def change(self, pattern: acl.Pattern, update: UpdateEntries) -> Failure | None:
        """Replace a pattern's entries by the result of `update`; None when they are written, or did not change."""
        try:
            async with self._lock:
                return await self._change(pattern, update)
        except ZooKeeperError as error:
            return Failure(
                ErrorCode.REQUEST_TIMED_OUT, f"unknown whether the ACLs of {pattern.name} were changed: {error}"
            )
        except formats.FormatError:
            return Failure(ErrorCode.INVALID_REQUEST, f"the stored ACLs of {pattern.name} are malformed")
        except ValueError:
            return Failure(ErrorCode.INVALID_REQUEST, f"invalid resource name {pattern.name!r}")

    async def _change(self, pattern: acl.Pattern, update: UpdateEntries) -> Failure | None:
        path = path_of(pattern)

        async def attempt() -> Attempt[Entries]:
            node = await self._session.get(path)
            entries = decode_entries(pattern, node)
            wanted = update(entries)
            return Attempt([] if wanted == entries else [_write(path, node, wanted), _notification(pattern)], wanted)

        async def is_retried(ended: MultiResult) -> bool:
            if not isinstance(ended, Refused):
                return True  # The next read finds out whether it was written.
            if ended.reason in RACES:
                await self._make_parents([pattern])
            return ended.reason in RACES

        wanted, ended = await optimistic_update(self._session, attempt, is_retried, PAUSE_S)
        if isinstance(ended, Committed):
            self.known.acls.put(pattern, wanted)
            return None
        if isinstance(ended, Refused) and ended.reason not in RACES:
            message = f"failed to write the ACLs of {pattern.name}: {ended.reason.value} {ended.detail}"
            return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message.strip())
        message = f"Failed to update ACLs for {pattern} after trying a maximum of {MAX_ATTEMPTS} times"
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)

    async def _make_parents(self, patterns: Iterable[acl.Pattern]) -> None:
        for path in {parent_of(pattern) for pattern in patterns} | {paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES}:
            await self._session.ensure_path(path)

    async def _refresh(self, reads: WatchedReads) -> None:
        """Read what new notifications name, or all ACLs."""
        if self._seen is None:
            kinds = (acl.PatternType.LITERAL, acl.PatternType.PREFIXED)
            await self._make_parents(
                acl.Pattern(resource_type, "", kind) for resource_type in acl.RESOURCE_TYPES for kind in kinds
            )
        present = {
            (prefixed, name)
            for prefixed in (False, True)
            for name in await reads.children(paths.acl_changes(prefixed=prefixed)) or []
            if name.startswith(paths.ACL_CHANGE_NAME)
        }
        named = None if self._seen is None else await self._named_by(present - self._seen)
        if named is None:
            await self._read_all()
        else:
            await self._read(named)
        self._seen = present
        self.known.loaded.set()
        await self._purger.purge(self._session, present)

    async def _named_by(self, notifications: Collection[Notification]) -> list[acl.Pattern] | None:
        """Return the patterns that notifications name; None if one cannot be read, so that all ACLs have to be read."""
        order = sorted(notifications)
        nodes = await self._session.multi_get(
            [paths.child(paths.acl_changes(prefixed=prefixed), name) for prefixed, name in order]
        )
        named: dict[acl.Pattern, None] | None = {}
        for (prefixed, name), node in zip(order, nodes, strict=True):
            try:
                # A deleted one had expired: it was created and deleted while this process was disconnected.
                found = None if node is None else decode_notification(name, node, prefixed=prefixed)
            except formats.FormatError as error:
                log.error(
                    "Failed to decode notification of changed ACLs; reading all ACLs", extra={"error": str(error)}
                )
                found = None
            if found is None:
                named = None
            elif named is not None:
                named[found] = None
        return None if named is None else list(named)

    async def _read_all(self) -> None:
        kinds = [
            (resource_type, kind)
            for resource_type in acl.RESOURCE_TYPES
            for kind in (acl.PatternType.LITERAL, acl.PatternType.PREFIXED)
        ]
        names = await self._session.multi_children(
            [parent_of(acl.Pattern(resource_type, "", kind)) for resource_type, kind in kinds]
        )
        patterns = [
            acl.Pattern(resource_type, name, kind)
            for (resource_type, kind), found in zip(kinds, names, strict=True)
            for name in found or []
        ]
        read = await self._entries(patterns)
        self.known.acls = Acls(read)
        log.info("Loaded ACLs", extra={"resources": len(read), "acls": sum(map(len, read.values()))})

    async def _read(self, patterns: Collection[acl.Pattern]) -> None:
        for pattern, entries in (await self._entries(patterns)).items():
            self.known.acls.put(pattern, entries)

    async def _entries(self, patterns: Collection[acl.Pattern]) -> dict[acl.Pattern, Entries]:
        nodes = await self._session.multi_get([path_of(pattern) for pattern in patterns])
        return {pattern: self._decoded(pattern, node) for pattern, node in zip(patterns, nodes, strict=True)}

    def _decoded(self, pattern: acl.Pattern, node: Node | None) -> Entries:
        """Decode a pattern's entries; `acl.LOCKED` if that fails."""
        try:
            return decode_entries(pattern, node)
        except formats.FormatError as error:
            key = (error.path, 0 if node is None else node.mzxid)
            if key not in self._logged:
                self._logged.add(key)
                log.error(
                    "Failed to decode ACLs; denying access to their resource for all but super users",
                    extra={"error": str(error)},
                )
            return frozenset({acl.LOCKED})


def _write(path: str, node: Node | None, wanted: Entries) -> Write:
    if node is None:
        return Create(path, encode_entries(wanted))
    return SetData(path, encode_entries(wanted), node.version) if wanted else Delete(path, node.version)


def _notification(pattern: acl.Pattern) -> Write:
    parent = paths.acl_changes(prefixed=pattern.pattern_type is acl.PatternType.PREFIXED)
    return Create(paths.child(parent, paths.ACL_CHANGE_NAME), encode_notification(pattern), sequential=True)


class NotificationPurger:
    """Deletes old notifications; `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first_seen: dict[Notification, float] = {}

    def expired(self, present: Collection[Notification]) -> list[Notification]:
        """Return those of the current notifications that are to be deleted now, the oldest first; forget those that are not present."""
        now = self._clock()
        self._first_seen = {name: self._first_seen.get(name, now) for name in present}
        old = [name for name, first_seen in self._first_seen.items() if now - first_seen > MAX_AGE_S]
        return sorted(old, key=lambda pair: pair[1])[:MAX_PURGED_AT_ONCE]

    async def purge(self, session: ZooKeeperSession, present: Collection[Notification]) -> None:
        """Delete old notifications. Failures are ignored: the next read repeats the deletion."""
        for prefixed, name in self.expired(present):
            await session.multi([Delete(paths.child(paths.acl_changes(prefixed=prefixed), name), ANY_VERSION)])


def is_prefixed(pattern: acl.Pattern) -> bool:
    """Return whether a pattern is in the tree of prefixed patterns."""
    return pattern.pattern_type is acl.PatternType.PREFIXED


def path_of(pattern: acl.Pattern) -> str:
    """Return the path of a pattern's znode. Raises ValueError for a name that no znode can have."""
    return paths.acls(pattern.resource_type.label, pattern.name, prefixed=is_prefixed(pattern))


def parent_of(pattern: acl.Pattern) -> str:
    """Return the path of the parent of a pattern's znode."""
    return paths.acls_of_type(pattern.resource_type.label, prefixed=is_prefixed(pattern))


def decode_entries(pattern: acl.Pattern, node: Node | None) -> Entries:
    """Decode a pattern's entries. Raises FormatError."""
    found = formats.decode_acls(path_of(pattern), None if node is None else node.data)
    return frozenset(
        acl.Entry.of_labels(binding.principal, binding.host, binding.operation, binding.permission) for binding in found
    )


def encode_entries(entries: Iterable[acl.Entry]) -> bytes:
    """Encode entries."""
    return formats.encode_acls(
        formats.AclEntry(entry.principal, entry.permission.label, entry.operation.label, entry.host)
        for entry in entries
    )


def decode_notification(name: str, node: Node, *, prefixed: bool) -> acl.Pattern:
    """Decode the pattern whose ACLs have changed. Raises FormatError."""
    decode = formats.decode_extended_acl_change if prefixed else formats.decode_acl_change
    found = decode(name, node.data)
    return acl.Pattern(_TYPES[found.resource_type], found.name, acl.PatternType[found.pattern_type])


def encode_notification(pattern: acl.Pattern) -> bytes:
    """Encode the notification of a pattern's changed ACLs."""
    return formats.encode_acl_change(
        formats.AclResource(pattern.resource_type.label, pattern.name, pattern.pattern_type.name)
    )
