"""Configurations of users, client ids and addresses below /config: read, and changed with a notification to brokers.

The path of an entity below /config is `users/alice`, `users/alice/clients/c`, `clients/<default>` or `ips/10.0.0.1`; names in it are
sanitized. A configuration that becomes empty is deleted, together with parents that are left without configuration and children.

Source: ZkAdminManager, AdminZkClient.changeConfigs and tryCleanQuotaNodes. Unlike these, one transaction contains the change and its
notification; it is refused if another process changed the configuration in between, and computed again.
"""

from collections.abc import Callable, Iterable, Sequence

from controller_core.model.quota import DEFAULT, EntityName, QuotaEntity, QuotaEntityType
from controller_core.shell.store import Config, UpdateConfig
from controller_core.shell.zookeeper.optimistic import Attempt, optimistic_update
from kafka_wire import ErrorCode, Failure
from kafka_zookeeper import paths, writes
from kafka_zookeeper.formats import FormatError, configs
from kafka_zookeeper.session import Node, ZooKeeperError, ZooKeeperSession

TYPES = {
    QuotaEntityType.USER: configs.EntityType.USERS,
    QuotaEntityType.CLIENT_ID: configs.EntityType.CLIENTS,
    QuotaEntityType.IP: configs.EntityType.IPS,
}
UNNAMEABLE = frozenset({"", ".", ".."})
"""Names that no znode can have: no quota can be set for them, only the defaults apply."""
PAUSE_S = 0.05
"""Pause before an update is tried again."""
_RACES = {
    writes.RefusedReason.BAD_VERSION,
    writes.RefusedReason.NODE_EXISTS,
    writes.RefusedReason.NO_NODE,
    writes.RefusedReason.NOT_EMPTY,
}
_STORE_UNAVAILABLE = Failure(
    ErrorCode.REQUEST_TIMED_OUT, "The metadata store is not available at the moment. Retry the request."
)
_INVALID_NAME = Failure(ErrorCode.INVALID_REQUEST, "An entity name must not be empty, '.' or '..'.")


class EntityConfigs:
    """Implements `shell.store.EntityConfigStore`; `session` returns the current session with ZooKeeper, if there is one."""

    def __init__(self, session: Callable[[], ZooKeeperSession | None]) -> None:
        self._session = session

    async def read(self, entities: Sequence[QuotaEntity]) -> dict[QuotaEntity, Config] | Failure:
        """Read configurations; an entity without one has an empty one."""
        read = await self._read([entity_path(entity) for entity in entities])
        return read if isinstance(read, Failure) else {entity: read[entity_path(entity)] for entity in entities}

    async def read_users(self) -> dict[EntityName, Config] | Failure:
        """Read the configurations of all users that have one."""
        found = await self._names([configs.EntityType.USERS])
        if isinstance(found, Failure):
            return found
        names = {f"{configs.EntityType.USERS}/{name}": name_of(name) for name in found[configs.EntityType.USERS]}
        read = await self._read(list(names))
        return read if isinstance(read, Failure) else {names[path]: config for path, config in read.items()}

    async def names(self, entity_type: QuotaEntityType) -> list[EntityName] | Failure:
        """List the entities of a type that have a configuration."""
        found = await self._names([TYPES[entity_type]])
        return found if isinstance(found, Failure) else [name_of(name) for name in found[TYPES[entity_type]]]

    async def client_ids_of(self, users: Sequence[EntityName]) -> dict[EntityName, list[EntityName]] | Failure:
        """List the client ids that have a configuration for one user only, by user."""
        parents = {client_ids_path(user): user for user in users}
        found = await self._names(list(parents))
        if isinstance(found, Failure):
            return found
        return {user: [name_of(name) for name in found[parent]] for parent, user in parents.items()}

    async def change(self, entity: QuotaEntity, change: UpdateConfig, *, validate_only: bool = False) -> Failure | None:
        """Replace an entity's configuration by the result of `change`; None on success. `validate_only` writes nothing."""
        session = self._session()
        if session is None:
            return _STORE_UNAVAILABLE
        path = entity_path(entity)
        try:
            return await _change(session, path, change, validate_only=validate_only)
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"unknown whether {path} was changed: {error}")
        except FormatError as error:
            return _malformed(error)
        except ValueError:
            return _INVALID_NAME

    def may_have_config(self, entity: QuotaEntity) -> bool:
        """Return whether znodes can have these names."""
        return is_nameable(entity)

    def stored_name(self, name: str) -> str:
        """Return a name as it is written in a path."""
        return configs.sanitize(name)

    async def _read(self, entities: Sequence[str]) -> dict[str, Config] | Failure:
        """Read configurations by their paths below /config."""
        session = self._session()
        if session is None:
            return _STORE_UNAVAILABLE
        try:
            config_paths = [paths.entity_config(entity) for entity in entities]
            nodes = await session.multi_get(config_paths)
            return {
                entity: {} if node is None else configs.decode_config(path, node.data)
                for entity, path, node in zip(entities, config_paths, nodes, strict=True)
            }
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"failed to read configurations: {error}")
        except FormatError as error:
            return _malformed(error)
        except ValueError:
            return _INVALID_NAME

    async def _names(self, parents: Iterable[str]) -> dict[str, list[str]] | Failure:
        """List the sanitized names below `users`, `users/alice/clients`, …; none if the parent does not exist."""
        session = self._session()
        if session is None:
            return _STORE_UNAVAILABLE
        parents = list(parents)
        try:
            found = await session.multi_children([f"{paths.CONFIG}/{parent}" for parent in parents])
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"failed to list configurations: {error}")
        return {parent: sorted(names or []) for parent, names in zip(parents, found, strict=True)}


async def _change(
    session: ZooKeeperSession, entity: str, change: UpdateConfig, *, validate_only: bool
) -> Failure | None:
    path = paths.entity_config(entity)

    async def attempt() -> Attempt[Failure | None]:
        node = await session.get(path)
        wanted = change({} if node is None else configs.decode_config(path, node.data))
        if isinstance(wanted, Failure):
            return Attempt([], wanted)
        return Attempt(
            [] if validate_only else [*await _writes(session, entity, node, wanted), _notification(entity)], None
        )

    async def is_retried(ended: writes.MultiResult) -> bool:
        if isinstance(ended, writes.Refused) and ended.reason is writes.RefusedReason.NO_NODE:
            await _make_roots(session, entity)
        return isinstance(ended, writes.Refused) and ended.reason in _RACES

    failure, ended = await optimistic_update(session, attempt, is_retried, PAUSE_S)
    if isinstance(ended, writes.Committed):
        return failure
    if not isinstance(ended, writes.Refused):
        return Failure(ErrorCode.REQUEST_TIMED_OUT, f"unknown whether {entity} was changed: connection lost")
    if ended.reason not in _RACES:
        message = f"failed to write {entity}: {ended.reason.value} {ended.detail}".strip()
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    return Failure(ErrorCode.REQUEST_TIMED_OUT, f"{entity} is changed by other processes at the same time")


async def _writes(session: ZooKeeperSession, entity: str, node: Node | None, wanted: Config) -> list[writes.Operation]:
    """Return the operations that make an entity's configuration the wanted one."""
    path = paths.entity_config(entity)
    if not wanted and not await session.children(path):
        return [] if node is None else [writes.Delete(path, node.version), *await _emptied(session, entity)]
    if node is not None:
        return [writes.SetData(path, configs.encode_config(wanted), node.version)]
    parents = [f"{paths.CONFIG}/{parent}" for parent in _parents(entity)]
    missing = [parent for parent in parents if not await session.exists(parent)]
    return [*(writes.Create(parent, None) for parent in missing), writes.Create(path, configs.encode_config(wanted))]


async def _emptied(session: ZooKeeperSession, entity: str) -> list[writes.Operation]:
    """Return the deletions of parents that are left without configuration and children, innermost first."""
    deletions: list[writes.Operation] = []
    child = entity
    for parent in reversed(_parents(entity)):
        path = f"{paths.CONFIG}/{parent}"
        node = await session.get(path)
        if node is None or await session.children(path) != [child.rpartition("/")[2]]:
            break
        if configs.decode_config(path, node.data):
            break
        # A child created in the meantime makes ZooKeeper refuse the deletion; a new configuration changes the version.
        deletions.append(writes.Delete(path, node.version))
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
    """Create the znodes that brokers create when they start: the type's own one, and the parent of notifications."""
    await session.ensure_path(f"{paths.CONFIG}/{entity.partition('/')[0]}")
    await session.ensure_path(paths.CONFIG_CHANGES)


def _malformed(error: FormatError) -> Failure:
    """Return the failure for a stored configuration that cannot be decoded, with the entity instead of the znode's path."""
    entity = error.path.removeprefix(f"{paths.CONFIG}/")
    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"the stored configuration of {entity} is malformed")


def _notification(entity: str) -> writes.Operation:
    return writes.Create(paths.CONFIG_CHANGE_PREFIX, configs.encode_config_change(entity), sequential=True)


def entity_path(entity: QuotaEntity) -> str:
    """Return the path below /config of an entity's configuration.

    >>> entity_path(QuotaEntity(user="CN=a", client_id=DEFAULT)), entity_path(QuotaEntity(ip="10.0.0.1"))
    ('users/CN%3Da/clients/<default>', 'ips/10.0.0.1')
    """
    parts = []
    if entity.user is not None:
        parts += [configs.EntityType.USERS, _part(entity.user)]
    if entity.client_id is not None:
        parts += [configs.EntityType.CLIENTS, _part(entity.client_id)]
    if entity.ip is not None:
        parts += [configs.EntityType.IPS, _part(entity.ip)]
    return "/".join(parts)


def client_ids_path(user: EntityName) -> str:
    """Return the path below /config of the parent of a user's client ids."""
    return f"{configs.EntityType.USERS}/{_part(user)}/{configs.EntityType.CLIENTS}"


def name_of(part: str) -> EntityName:
    """Return the name that a part of a path represents."""
    return DEFAULT if part == configs.DEFAULT_ENTITY else configs.desanitize(part)


def is_nameable(entity: QuotaEntity) -> bool:
    """Return whether znodes can have the names of a user and a client id."""
    names = (name for name in (entity.user, entity.client_id) if isinstance(name, str))
    return all(configs.sanitize(name) not in UNNAMEABLE for name in names)


def _part(name: EntityName) -> str:
    return configs.DEFAULT_ENTITY if name is DEFAULT else configs.sanitize(str(name))
