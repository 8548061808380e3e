"""AlterClientQuotas and DescribeClientQuotas, versions 0 and 1: how fast clients may be (KIP-546).

Quotas belong to no tenure: any process with a session reads and changes them, as any broker does. An entity that is refused refuses
no other.

Source: ZkAdminManager.alterClientQuotas, describeClientQuotas. Leaves out what is legal (cluster.client_quotas), ZooKeeper (configs).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from controller_core.cluster.client_quota_filter import Match, QuotaFilter, quota_values, read_filter
from controller_core.cluster.client_quotas import alter_quotas, read_entity
from controller_core.model.errors import Failure
from controller_core.model.quota import DEFAULT, EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from controller_core.shell.admin.kept import where_kept
from controller_core.shell.admin.outcomes import Outcome, error_fields
from controller_core.shell.front.context import OwnHandler
from controller_core.shell.zookeeper.configs.entities import Config, EntityConfigs
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_zookeeper.formats.configs import DEFAULT_ENTITY, EntityType, desanitize, sanitize

MAX_LOOKUP_S = 5.0
"""How long a host's name may take to be resolved: a resolver's own first timeout."""

IsHost = Callable[[str], Awaitable[bool]]
"""Whether a text is an address, or a name that can be resolved to one."""


async def is_host(name: str) -> bool:
    """Ask the system's resolver."""
    try:
        async with asyncio.timeout(MAX_LOOKUP_S):
            return bool(await asyncio.get_running_loop().getaddrinfo(name, None))
    except (OSError, UnicodeError, TimeoutError):
        return False


def quota_handlers(configs: EntityConfigs | None, resolves: IsHost = is_host) -> Mapping[ApiKey, OwnHandler]:
    """Make the handlers; with nowhere to read and write they leave requests to a broker."""

    async def alter(kept: EntityConfigs, body: Body) -> Body:
        return await alter_client_quotas(kept, resolves, body)

    return {
        ApiKey.ALTER_CLIENT_QUOTAS: where_kept(configs, "quotas", alter),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: where_kept(configs, "quotas", describe_client_quotas),
    }


async def alter_client_quotas(configs: EntityConfigs, resolves: IsHost, body: Body) -> Body:
    """Change entities one after the other; of an entity that stands twice, what became of the last is told."""
    told: dict[frozenset[tuple[str, str | None]], Body] = {}
    for entry in body["entries"]:
        named = {each["entity_type"]: each["entity_name"] for each in entry["entity"]}
        outcome = await _alter(configs, resolves, entry, validate_only=body["validate_only"])
        told[frozenset(named.items())] = {
            **error_fields(outcome),
            "entity": [{"entity_type": entity_type, "entity_name": name} for entity_type, name in named.items()],
        }
    return {"entries": list(told.values())}


async def _alter(configs: EntityConfigs, resolves: IsHost, entry: Body, *, validate_only: bool) -> Outcome:
    entity = read_entity([(each["entity_type"], each["entity_name"]) for each in entry["entity"]])
    if isinstance(entity, Failure):
        return entity
    # The name as it stands in the path is looked up, since that is what brokers do with it: they know no IPv6 address there.
    if isinstance(entity.ip, str) and not await resolves(sanitize(entity.ip)):
        return Failure(ErrorCode.INVALID_REQUEST, f"{sanitize(entity.ip)} is not a valid IP or resolvable host.")
    changes = [QuotaChange(op["key"], None if op["remove"] else op["value"]) for op in entry["ops"]]
    change = partial(alter_quotas, entity, changes)
    return await configs.change(entity_path(entity), change, validate_only=validate_only)


async def describe_client_quotas(configs: EntityConfigs, body: Body) -> Body:
    """Tell the quotas of all entities that a filter selects; entities without any are not told of."""
    components = [(each["entity_type"], each["match_type"], each["match"]) for each in body["components"]]
    asked = read_filter(components, strict=body["strict"])
    if isinstance(asked, Failure):
        return _not_described(asked)
    entities = await _selected(configs, asked)
    if isinstance(entities, Failure):
        return _not_described(entities)
    read = await configs.read(list(entities))
    if isinstance(read, Failure):
        return _not_described(read)
    return _described(entities, read)


def _described(entities: Mapping[str, QuotaEntity], read: Mapping[str, Config]) -> Body:
    entries = []
    for path, entity in entities.items():
        values = quota_values(entity, read[path])
        if isinstance(values, Failure):
            return _not_described(values)
        if values:
            line = {"values": [{"key": key, "value": value} for key, value in values.items()]}
            entries.append({"entity": _entity_body(entity), **line})
    return {**error_fields(None), "entries": entries}


def _not_described(failure: Failure) -> Body:
    return {**error_fields(failure), "entries": None}


async def _selected(configs: EntityConfigs, asked: QuotaFilter) -> dict[str, QuotaEntity] | Failure:
    """List the entities that a filter selects, by path: what is named exactly is not looked for."""
    users = await _of_type(configs, EntityType.USERS, asked.user, wanted=asked.wants_users)
    if isinstance(users, Failure):
        return users
    clients = await _of_type(configs, EntityType.CLIENTS, asked.client_id, wanted=asked.wants_client_ids)
    if isinstance(clients, Failure):
        return clients
    ips = await _of_type(configs, EntityType.IPS, asked.ip, wanted=asked.wants_ips)
    if isinstance(ips, Failure):
        return ips
    parents = (
        {f"{EntityType.USERS}/{user}/{EntityType.CLIENTS}": user for user in users} if asked.wants_client_ids else {}
    )
    of_users = await configs.names(list(parents))
    if isinstance(of_users, Failure):
        return of_users
    found = [
        *(QuotaEntity(user=_name(user)) for user in users),
        *(QuotaEntity(client_id=_name(client)) for client in clients),
        *(
            QuotaEntity(user=_name(user), client_id=_name(client))
            for parent, user in parents.items()
            for client in of_users[parent]
        ),
        *(QuotaEntity(ip=_name(ip)) for ip in ips),
    ]
    return {entity_path(entity): entity for entity in found if asked.selects(entity)}


async def _of_type(
    configs: EntityConfigs, entity_type: EntityType, match: Match | None, *, wanted: bool
) -> Iterable[str] | Failure:
    if not wanted:
        return []
    if match is not None and match.name is not None:
        return [_part(match.name)]
    found = await configs.names([entity_type])
    return found if isinstance(found, Failure) else found[entity_type]


def entity_path(entity: QuotaEntity) -> str:
    """Name the path below /config that holds an entity's quotas.

    >>> entity_path(QuotaEntity(user="CN=a", client_id=DEFAULT)), entity_path(QuotaEntity(ip="10.0.0.1"))
    ('users/CN%3Da/clients/<default>', 'ips/10.0.0.1')
    """
    parts = []
    if entity.user is not None:
        parts += [EntityType.USERS, _part(entity.user)]
    if entity.client_id is not None:
        parts += [EntityType.CLIENTS, _part(entity.client_id)]
    if entity.ip is not None:
        parts += [EntityType.IPS, _part(entity.ip)]
    return "/".join(parts)


def _part(name: EntityName) -> str:
    return DEFAULT_ENTITY if name is DEFAULT else sanitize(str(name))


def _name(part: str) -> EntityName:
    return DEFAULT if part == DEFAULT_ENTITY else desanitize(part)


def _entity_body(entity: QuotaEntity) -> list[Body]:
    parts = {
        QuotaEntityType.USER: entity.user,
        QuotaEntityType.CLIENT_ID: entity.client_id,
        QuotaEntityType.IP: entity.ip,
    }
    return [
        {"entity_type": entity_type, "entity_name": name if isinstance(name, str) else None}
        for entity_type, name in parts.items()
        if name is not None
    ]
