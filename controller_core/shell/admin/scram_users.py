"""DescribeUserScramCredentials, version 0: which users have a password kept by servers, and by what mechanism (KIP-554).

Whoever has a session with ZooKeeper answers, the controller or not, as any broker does. Keys and salts are not told.

Source: ZkAdminManager.describeUserScramCredentials. Leaves out altering (scram), ZooKeeper (configs) and who may ask.
"""

from collections import Counter

from controller_core.model.errors import Failure
from controller_core.shell.admin.outcomes import Outcome, error_fields
from controller_core.shell.zookeeper.configs.entities import Config, EntityConfigs
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, decode_credential
from kafka_zookeeper.formats.configs import EntityType, desanitize, sanitize

MECHANISM_OF = {mechanism.type_id: mechanism for mechanism in SCRAM_MECHANISMS.values()}

NOBODY = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")


async def describe_user_scram_credentials(configs: EntityConfigs, body: Body) -> Body:
    """Answer with the mechanisms and iterations of the users that are named; with no name, of all that have any."""
    named = [each["name"] for each in body["users"] or []]
    outcomes: dict[str, Outcome | list[Body]] = {
        name: _twice(name) if name else NOBODY for name, times in Counter(named).items() if not name or times > 1
    }
    asked = {name: user_entity(name) for name in dict.fromkeys(named) if name not in outcomes}
    if not named:
        found = await configs.names([EntityType.USERS])
        if isinstance(found, Failure):
            return {**error_fields(found), "results": []}
        sanitized = sorted(found[EntityType.USERS], key=desanitize)
        asked = {desanitize(each): f"{EntityType.USERS}/{each}" for each in sanitized}
    if isinstance(read := await configs.read(list(asked.values())), Failure):
        return {**error_fields(read), "results": []}
    for user, entity in asked.items():
        outcomes[user] = described(user, read[entity])
    # Whoever is asked for by name has a line; of all there are, those without credentials have none.
    shown = dict.fromkeys(named) if named else [user for user, each in outcomes.items() if not _has_none(each)]
    return {**error_fields(None), "results": [_result(user, outcomes[user]) for user in shown]}


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


def user_entity(user: str) -> str:
    """Name the entity that holds a user's credentials and quotas."""
    return f"{EntityType.USERS}/{sanitize(user)}"
