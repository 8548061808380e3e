"""AlterClientQuotas and DescribeClientQuotas, versions 0 and 1: how fast clients may be (KIP-546).

Quotas belong to no tenure: any process with a session reads and changes them, as any broker does. An entity that is refused refuses
no other.

Source: ZkAdminManager.alterClientQuotas, describeClientQuotas. Leaves out what is legal (cluster.client_quotas), the store (metadata_stores).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller_core.model.quota import EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from controller_core.rules.client_quotas import Match, QuotaFilter, alter_quotas, quota_values, read_entity, read_filter
from controller_core.shell.admin.config_backed import where_kept
from controller_core.shell.admin.outcomes import Outcome, error_fields
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import Config, EntityConfigStore
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

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


def quota_handlers(configs: EntityConfigStore | None, resolves: IsHost = is_host) -> Mapping[ApiKey, RequestHandler]:
    """Make the handlers; with nowhere to read and write they leave requests to a broker."""

    async def alter(kept: EntityConfigStore, body: Body) -> Body:
        return await alter_client_quotas(kept, resolves, body)

    return {
        ApiKey.ALTER_CLIENT_QUOTAS: where_kept(configs, "quotas", alter),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: where_kept(configs, "quotas", describe_client_quotas),
    }


async def alter_client_quotas(configs: EntityConfigStore, resolves: IsHost, body: Body) -> Body:
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


async def _alter(configs: EntityConfigStore, resolves: IsHost, entry: Body, *, validate_only: bool) -> Outcome:
    entity = read_entity([(each["entity_type"], each["entity_name"]) for each in entry["entity"]])
    if isinstance(entity, Failure):
        return entity
    if isinstance(entity.ip, str):
        # The name as it is stored is looked up, since that is what brokers do with it: in ZooKeeper they know no IPv6 address.
        address = configs.stored_name(entity.ip)
        if not await resolves(address):
            return Failure(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.")
    changes = [QuotaChange(op["key"], None if op["remove"] else op["value"]) for op in entry["ops"]]
    change = partial(alter_quotas, entity, changes)
    return await configs.change(entity, change, validate_only=validate_only)


async def describe_client_quotas(configs: EntityConfigStore, body: Body) -> Body:
    """Tell the quotas of all entities that a filter selects; entities without any are not told of."""
    components = [(each["entity_type"], each["match_type"], each["match"]) for each in body["components"]]
    asked = read_filter(components, strict=body["strict"])
    if isinstance(asked, Failure):
        return _not_described(asked)
    entities = await _selected(configs, asked)
    if isinstance(entities, Failure):
        return _not_described(entities)
    read = await configs.read(entities)
    if isinstance(read, Failure):
        return _not_described(read)
    return _described(read)


def _described(read: Mapping[QuotaEntity, Config]) -> Body:
    entries = []
    for entity, config in read.items():
        values = quota_values(entity, config)
        if isinstance(values, Failure):
            return _not_described(values)
        if values:
            line = {"values": [{"key": key, "value": value} for key, value in values.items()]}
            entries.append({"entity": _entity_body(entity), **line})
    return {**error_fields(None), "entries": entries}


def _not_described(failure: Failure) -> Body:
    return {**error_fields(failure), "entries": None}


async def _selected(configs: EntityConfigStore, asked: QuotaFilter) -> list[QuotaEntity] | Failure:
    """List the entities that a filter selects: what is named exactly is not looked for."""
    users = await _of_type(configs, QuotaEntityType.USER, asked.user, wanted=asked.wants_users)
    if isinstance(users, Failure):
        return users
    clients = await _of_type(configs, QuotaEntityType.CLIENT_ID, asked.client_id, wanted=asked.wants_client_ids)
    if isinstance(clients, Failure):
        return clients
    ips = await _of_type(configs, QuotaEntityType.IP, asked.ip, wanted=asked.wants_ips)
    if isinstance(ips, Failure):
        return ips
    of_users = await configs.client_ids_of(users if asked.wants_client_ids else [])
    if isinstance(of_users, Failure):
        return of_users
    found = [
        *(QuotaEntity(user=user) for user in users),
        *(QuotaEntity(client_id=client) for client in clients),
        *(QuotaEntity(user=user, client_id=client) for user, its in of_users.items() for client in its),
        *(QuotaEntity(ip=ip) for ip in ips),
    ]
    return list(dict.fromkeys(entity for entity in found if asked.selects(entity)))


async def _of_type(
    configs: EntityConfigStore, entity_type: QuotaEntityType, match: Match | None, *, wanted: bool
) -> list[EntityName] | Failure:
    if not wanted:
        return []
    if match is not None and match.name is not None:
        return [match.name]
    return await configs.names(entity_type)


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
