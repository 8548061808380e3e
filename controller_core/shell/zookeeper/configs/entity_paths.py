"""Paths of entities below /config: the model's names to and from the sanitized names in znodes."""

from controller_core.model.quota import DEFAULT, EntityName, QuotaEntity, QuotaEntityType
from kafka_zookeeper.formats.configs import DEFAULT_ENTITY, EntityType, desanitize, sanitize

TYPES = {
    QuotaEntityType.USER: EntityType.USERS,
    QuotaEntityType.CLIENT_ID: EntityType.CLIENTS,
    QuotaEntityType.IP: EntityType.IPS,
}
UNNAMEABLE = frozenset({"", ".", ".."})
"""Names that no znode can have: no quota can be set for them, but the defaults apply."""


def entity_path(entity: QuotaEntity) -> str:
    """Name the path below /config that holds an entity's configuration.

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


def client_ids_path(user: EntityName) -> str:
    """Name the path below /config under which a user's client ids are."""
    return f"{EntityType.USERS}/{_part(user)}/{EntityType.CLIENTS}"


def name_of(part: str) -> EntityName:
    """Read a name in a path."""
    return DEFAULT if part == DEFAULT_ENTITY else desanitize(part)


def is_nameable(entity: QuotaEntity) -> bool:
    """Return whether znodes can have the names of a user and a client id."""
    names = (name for name in (entity.user, entity.client_id) if isinstance(name, str))
    return all(sanitize(name) not in UNNAMEABLE for name in names)


def _part(name: EntityName) -> str:
    return DEFAULT_ENTITY if name is DEFAULT else sanitize(str(name))
