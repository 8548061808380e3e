"""DescribeUserScramCredentials, version 0: which users have a password kept by servers, and by what mechanism (KIP-554).

Whoever has a session with ZooKeeper answers, the controller or not, as any broker does. Keys and salts are not told.

Source: ZkAdminManager.describeUserScramCredentials. Leaves out altering (scram), the store (metadata_stores) and who may ask.
"""

from collections import Counter

from controller_core.model.quota import DEFAULT, QuotaEntity
from controller_core.shell.admin.outcomes import Outcome, error_fields
from controller_core.shell.metadata_stores import Config, EntityConfigStore
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, decode_credential

MECHANISM_OF = {mechanism.type_id: mechanism for mechanism in SCRAM_MECHANISMS.values()}

NOBODY = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")


async def describe_user_scram_credentials(configs: EntityConfigStore, body: Body) -> Body:
    """Answer with the mechanisms and iterations of the users that are named; with no name, of all that have any."""
    named = [each["name"] for each in body["users"] or []]
    outcomes: dict[str, Outcome | list[Body]] = {
        name: _twice(name) if name else NOBODY for name, times in Counter(named).items() if not name or times > 1
    }
    configs_of = await _named(
        configs, [name for name in dict.fromkeys(named) if name not in outcomes], all_users=not named
    )
    if isinstance(configs_of, Failure):
        return {**error_fields(configs_of), "results": []}
    for user, config in configs_of.items():
        outcomes[user] = described(user, config)
    # Whoever is asked for by name has a line; of all there are, those without credentials have none.
    shown = dict.fromkeys(named) if named else [user for user, each in outcomes.items() if not _has_none(each)]
    return {**error_fields(None), "results": [_result(user, outcomes[user]) for user in shown]}


async def _named(configs: EntityConfigStore, users: list[str], *, all_users: bool) -> dict[str, Config] | Failure:
    """Read the configurations of users, or of all there are in the order of their names."""
    if not all_users:
        read = await configs.read([QuotaEntity(user=user) for user in users])
        return read if isinstance(read, Failure) else dict(zip(users, read.values(), strict=True))
    found = await configs.read_users()
    if isinstance(found, Failure):
        return found
    shown = [(DEFAULT.value if user is DEFAULT else str(user), config) for user, config in found.items()]
    return dict(sorted(shown, key=lambda each: each[0]))


def _has_none(outcome: Outcome | list[Body]) -> bool:
    return isinstance(outcome, Failure) and outcome.code is ErrorCode.RESOURCE_NOT_FOUND


def described(user: str, config: Config) -> list[Body] | Failure:
    """List a user's credentials. Pure."""
    credentials = [(each, config[each.name]) for each in MECHANISM_OF.values() if each.name in config]
    if not credentials:
        words = f"Attempt to describe a user credential that does not exist: {user}"
        return Failure(ErrorCode.RESOURCE_NOT_FOUND, words)
    try:
        return [
            {"mechanism": mechanism.type_id, "iterations": decode_credential(text).iterations}
            for mechanism, text in credentials
        ]
    except ValueError as error:
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"a credential of {user} cannot be read: {error}")


def _result(user: str, outcome: Outcome | list[Body]) -> Body:
    if isinstance(outcome, list):
        return {"user": user, **error_fields(None), "credential_infos": outcome}
    return {"user": user, **error_fields(outcome), "credential_infos": []}


def _twice(user: str) -> Failure:
    words = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return Failure(ErrorCode.DUPLICATE_RESOURCE, words)
