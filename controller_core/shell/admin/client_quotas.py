"""AlterClientQuotas and DescribeClientQuotas, versions 0 and 1 (KIP-546).

Any process that is connected to the store answers, as any broker does; it need not be the controller. An invalid entity does not affect
the others. The rules of valid quotas are in `rules.client_quotas`.

Source: ZkAdminManager.alterClientQuotas, describeClientQuotas.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller_core.model.quota import EntityName, QuotaChange, QuotaEntity, QuotaEntityType
from controller_core.rules import client_quotas
from controller_core.shell.admin.responses import Outcome, error_fields
from controller_core.shell.front.handler import RequestHandler, store_backed_handler
from controller_core.shell.store import Config, EntityConfigStore
from kafka_wire import ApiKey, Body, ErrorCode, Failure

MAX_LOOKUP_S = 5.0
"""Time limit for resolving a host name: the usual first timeout of a resolver."""

IsHost = Callable[[str], Awaitable[bool]]
"""Returns whether a text is an address or a resolvable host name."""


async def is_host(name: str) -> bool:
    """Query the system's resolver."""
    try:
        async with asyncio.timeout(MAX_LOOKUP_S):
            return bool(await asyncio.get_running_loop().getaddrinfo(name, None))
    except (OSError, UnicodeError, TimeoutError):
        return False


def quota_handlers(configs: EntityConfigStore | None, resolves: IsHost = is_host) -> Mapping[ApiKey, RequestHandler]:
    """Create the handlers; without a store they relay requests to a broker."""

    async def alter(store: EntityConfigStore, body: Body) -> Body:
        return await alter_client_quotas(store, resolves, body)

    return {
        ApiKey.ALTER_CLIENT_QUOTAS: store_backed_handler(configs, "quotas", alter),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: store_backed_handler(configs, "quotas", describe_client_quotas),
    }


async def alter_client_quotas(configs: EntityConfigStore, resolves: IsHost, body: Body) -> Body:
    """Change entities one after the other; for an entity that is listed twice, the outcome of the last entry is returned."""
    outcomes: dict[NamedEntity, Outcome] = {}
    for entry in body["entries"]:
        # The stored form of an IP's name is resolved, as brokers do: they cannot resolve the stored form of an IPv6 address.
        requested = await requested_changes(entry, resolves, configs.stored_name)
        if not isinstance(requested, Failure):
            change = partial(client_quotas.alter_quotas, *requested)
            outcome = await configs.change(requested[0], change, validate_only=body["validate_only"])
        outcomes[named_entity(entry)] = requested if isinstance(requested, Failure) else outcome
    return altered_body(outcomes)


NamedEntity = tuple[tuple[str, str | None], ...]
"""Types and names of an entity as a request has them, without duplicates."""


def named_entity(entry: Body) -> NamedEntity:
    """Return the entity of an alteration; of two names of one type the last one is used."""
    return tuple(sorted({component["entity_type"]: component["entity_name"] for component in entry["entity"]}.items()))


async def requested_changes(
    entry: Body, resolves: IsHost, stored_name: Callable[[str], str] = str
) -> tuple[QuotaEntity, list[QuotaChange]] | Failure:
    """Return the entity of an alteration and its changes, or why the entity is refused."""
    entity = client_quotas.read_entity(
        [(component["entity_type"], component["entity_name"]) for component in entry["entity"]]
    )
    if isinstance(entity, Failure):
        return entity
    if isinstance(entity.ip, str):
        address = stored_name(entity.ip)
        if not await resolves(address):
            return Failure(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP or resolvable host.")
    return entity, [QuotaChange(op["key"], None if op["remove"] else op["value"]) for op in entry["ops"]]


def altered_body(outcomes: Mapping[NamedEntity, Outcome]) -> Body:
    """Answer an alteration: the outcome of each entity."""
    return {
        "entries": [
            {
                **error_fields(outcome),
                "entity": [{"entity_type": entity_type, "entity_name": name} for entity_type, name in entity],
            }
            for entity, outcome in outcomes.items()
        ]
    }


async def describe_client_quotas(configs: EntityConfigStore, body: Body) -> Body:
    """Describe the quotas of all entities that a filter selects; entities without quotas are omitted."""
    components = [
        (component["entity_type"], component["match_type"], component["match"]) for component in body["components"]
    ]
    quota_filter = client_quotas.read_filter(components, strict=body["strict"])
    if isinstance(quota_filter, Failure):
        return _not_described(quota_filter)
    entities = await _selected(configs, quota_filter)
    if isinstance(entities, Failure):
        return _not_described(entities)
    read = await configs.read(entities)
    if isinstance(read, Failure):
        return _not_described(read)
    return _described(read)


def _described(read: Mapping[QuotaEntity, Config]) -> Body:
    entries = []
    for entity, config in read.items():
        values = client_quotas.quota_values(entity, config)
        if isinstance(values, Failure):
            return _not_described(values)
        if values:
            line = {"values": [{"key": key, "value": value} for key, value in values.items()]}
            entries.append({"entity": _entity_body(entity), **line})
    return {**error_fields(None), "entries": entries}


def _not_described(failure: Failure) -> Body:
    return {**error_fields(failure), "entries": None}


async def _selected(configs: EntityConfigStore, quota_filter: client_quotas.QuotaFilter) -> list[QuotaEntity] | Failure:
    """List the entities that a filter selects; exact names are used without listing the store."""
    users = await _of_type(configs, QuotaEntityType.USER, quota_filter.user, wanted=quota_filter.wants_users)
    if isinstance(users, Failure):
        return users
    clients = await _of_type(
        configs, QuotaEntityType.CLIENT_ID, quota_filter.client_id, wanted=quota_filter.wants_client_ids
    )
    if isinstance(clients, Failure):
        return clients
    ips = await _of_type(configs, QuotaEntityType.IP, quota_filter.ip, wanted=quota_filter.wants_ips)
    if isinstance(ips, Failure):
        return ips
    of_users = await configs.client_ids_of(users if quota_filter.wants_client_ids else [])
    if isinstance(of_users, Failure):
        return of_users
    found = [
        *(QuotaEntity(user=user) for user in users),
        *(QuotaEntity(client_id=client) for client in clients),
        *(QuotaEntity(user=user, client_id=client) for user, its in of_users.items() for client in its),
        *(QuotaEntity(ip=ip) for ip in ips),
    ]
    return list(dict.fromkeys(entity for entity in found if quota_filter.selects(entity)))


async def _of_type(
    configs: EntityConfigStore, entity_type: QuotaEntityType, match: client_quotas.NameMatch | None, *, wanted: bool
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
