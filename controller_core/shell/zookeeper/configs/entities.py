"""Configurations of users, client ids and addresses as they stand below /config: read, and changed with the notice to brokers.

An entity is named by its path below /config: `users/alice`, `users/alice/clients/c`, `clients/<default>`, `ips/10.0.0.1`; names in
it are sanitized. A configuration that becomes empty is deleted, and with it the parents that were there for its sake.

Source: ZkAdminManager, AdminZkClient.changeConfigs and tryCleanQuotaNodes; unlike these a change is one transaction with its notice,
is refused if somebody else's came between, and then made again on what is there. Leaves out what may stand in one (admin).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from controller_core.model.errors import Failure
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.formats.configs import decode_config, encode_config, encode_config_change
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.session import Node, ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, Delete, Operation, Refused, RefusedReason, SetData

MAX_ATTEMPTS = 10
"""Times that a change is made anew when others change the same entity."""
PAUSE_S = 0.05
"""Pause before it is made anew."""

Config = Mapping[str, str]
Change = Callable[[Config], Config | Failure]
"""Makes a configuration of the present one, or refuses to."""

_RACES = {RefusedReason.BAD_VERSION, RefusedReason.NODE_EXISTS, RefusedReason.NO_NODE, RefusedReason.NOT_EMPTY}
_NO_SESSION = Failure(ErrorCode.REQUEST_TIMED_OUT, "There is no session with ZooKeeper at the moment.")


class EntityConfigs:
    """Entities' configurations; `session` gives the present session with ZooKeeper, if there is one."""

    def __init__(self, session: Callable[[], ZooKeeperSession | None]) -> None:
        self._session = session

    async def read(self, entities: Sequence[str]) -> dict[str, Config] | Failure:
        """Read configurations; an entity without one has an empty one."""
        session = self._session()
        if session is None:
            return _NO_SESSION
        try:
            where = [paths.entity_config(entity) for entity in entities]
            nodes = await session.multi_get(where)
            return {
                entity: {} if node is None else decode_config(path, node.data)
                for entity, path, node in zip(entities, where, nodes, strict=True)
            }
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"configurations cannot be read at the moment: {error}")
        except FormatError as error:
            return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"the configuration in {error.path} is malformed")
        except ValueError as error:
            return _not_nameable(error)

    async def names(self, parents: Sequence[str]) -> dict[str, list[str]] | Failure:
        """Name what there is below `users`, `users/alice/clients`, …: sanitized; nothing where there is no such parent."""
        session = self._session()
        if session is None:
            return _NO_SESSION
        try:
            found = await session.multi_children([f"{paths.CONFIG}/{parent}" for parent in parents])
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"configurations cannot be listed at the moment: {error}")
        return {parent: sorted(names or []) for parent, names in zip(parents, found, strict=True)}

    async def change(self, entity: str, change: Change, *, validate_only: bool = False) -> Failure | None:
        """Replace an entity's configuration by what `change` makes of it; None when that is written, or would be."""
        session = self._session()
        if session is None:
            return _NO_SESSION
        try:
            path = paths.entity_config(entity)
            for _ in range(MAX_ATTEMPTS):
                node = await session.get(path)
                wanted = change({} if node is None else decode_config(path, node.data))
                if isinstance(wanted, Failure):
                    return wanted
                if validate_only:
                    return None
                result = await session.multi([*await _writes(session, entity, node, wanted), _notice(entity)])
                if isinstance(result, Committed):
                    return None
                if not isinstance(result, Refused):
                    return Failure(ErrorCode.REQUEST_TIMED_OUT, f"{entity} may be changed or not: the connection went")
                if result.reason not in _RACES:
                    words = f"{entity} cannot be written: {result.reason.value} {result.detail}".strip()
                    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, words)
                if result.reason is RefusedReason.NO_NODE:
                    await _make_roots(session, entity)
                await asyncio.sleep(PAUSE_S)
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"{entity} may be changed or not: {error}")
        except FormatError as error:
            return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"{entity} cannot be changed: {error.path} is malformed")
        except ValueError as error:
            return _not_nameable(error)
        return Failure(ErrorCode.REQUEST_TIMED_OUT, f"others change {entity} all the time")


async def _writes(session: ZooKeeperSession, entity: str, node: Node | None, wanted: Config) -> list[Operation]:
    """List what makes an entity's configuration the wanted one."""
    path = paths.entity_config(entity)
    if not wanted and not await session.children(path):
        return [] if node is None else [Delete(path, node.version), *await _emptied(session, entity)]
    if node is not None:
        return [SetData(path, encode_config(wanted), node.version)]
    parents = [f"{paths.CONFIG}/{parent}" for parent in _parents(entity)]
    missing = [parent for parent in parents if not await session.exists(parent)]
    return [*(Create(parent, None) for parent in missing), Create(path, encode_config(wanted))]


async def _emptied(session: ZooKeeperSession, entity: str) -> list[Operation]:
    """List the deletions of parents that are left with nothing, from the inside out."""
    deletions: list[Operation] = []
    child = entity
    for parent in reversed(_parents(entity)):
        path = f"{paths.CONFIG}/{parent}"
        node = await session.get(path)
        if node is None or await session.children(path) != [child.rpartition("/")[2]]:
            break
        if decode_config(path, node.data):
            break
        # A child that comes meanwhile refuses the deletion; a configuration that does changes the version.
        deletions.append(Delete(path, node.version))
        child = parent
    return deletions


def _parents(entity: str) -> list[str]:
    """List the parents between an entity and its type.

    >>> _parents("users/alice/clients/c"), _parents("clients/c")
    (['users/alice', 'users/alice/clients'], [])
    """
    parts = entity.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


async def _make_roots(session: ZooKeeperSession, entity: str) -> None:
    """Make what brokers make when they start: the type's own znode, and where notices are left."""
    await session.ensure_path(f"{paths.CONFIG}/{entity.partition('/')[0]}")
    await session.ensure_path(paths.CONFIG_CHANGES)


def _not_nameable(error: ValueError) -> Failure:
    """Say that ZooKeeper knows no such name: `.` and `..` are no names of znodes."""
    return Failure(ErrorCode.INVALID_REQUEST, str(error))


def _notice(entity: str) -> Operation:
    return Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(entity), sequential=True)
