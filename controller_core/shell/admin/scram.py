"""AlterUserScramCredentials, version 0: what servers keep of users' passwords, set and removed (KIP-554).

The client salts the password, so the password itself never comes here. A user of whom one alteration is refused is not altered at all;
one user's refusal refuses no other.

Source: ZkAdminManager.alterUserScramCredentials. Leaves out describing (scram_users), the store (metadata_stores) and who may ask.
"""

# MERGED controller_core.shell.admin.scram: """DescribeUserScramCredentials, version 0: which users have a password kept by servers, and by what mechanism (KIP-554).
# MERGED controller_core.shell.admin.scram:
# MERGED controller_core.shell.admin.scram: Whoever has a session with ZooKeeper answers, the controller or not, as any broker does. Keys and salts are not told.
# MERGED controller_core.shell.admin.scram:
# MERGED controller_core.shell.admin.scram: Source: ZkAdminManager.describeUserScramCredentials. Leaves out altering (scram), the store (metadata_stores) and who may ask.
# MERGED controller_core.shell.admin.scram: """
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller_core.model.quota import DEFAULT, QuotaEntity
from controller_core.shell.admin.config_backed import where_kept
from controller_core.shell.admin.outcomes import NOT_CONTROLLER, Outcome, error_fields
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.store import Config, EntityConfigStore
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.sasl import scram_keys

NO_NAME = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
UNKNOWN_MECHANISM = Failure(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
TOO_LONG_A_SALT = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt has over {scram_keys.MAX_SALT_BYTES} bytes")
TWICE = Failure(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NOT_THERE = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def scram_handlers(
    configs: EntityConfigStore | None, is_controller: Callable[[], Awaitable[bool]]
) -> Mapping[ApiKey, RequestHandler]:
    """Make the handlers; with nowhere to read and write they leave requests to a broker."""

    async def alter(kept: EntityConfigStore, body: Body) -> Body:
        return await alter_user_scram_credentials(kept, is_controller, body)

    return {
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: where_kept(configs, "SCRAM credentials", alter),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: where_kept(
            configs, "SCRAM credentials", describe_user_scram_credentials
        ),
    }


async def alter_user_scram_credentials(
    configs: EntityConfigStore, is_controller: Callable[[], Awaitable[bool]], body: Body
) -> Body:
    """Answer a request; only the controller does, as in Kafka."""
    users = list(dict.fromkeys(each["name"] for each in [*body["deletions"], *body["upsertions"]]))
    if not await is_controller():
        return _results(dict.fromkeys(sorted(users), NOT_CONTROLLER))
    outcomes: dict[str, Outcome] = dict(refused(body))
    for user in users:
        if user not in outcomes:
            outcomes[user] = await configs.change(QuotaEntity(user=user), partial(altered, user=user, body=body))
    return _results(outcomes)


def refused(body: Body) -> dict[str, Failure]:
    """Find the users whose alterations cannot be, whatever there is of them. Pure."""
    found: dict[str, Failure] = {}
    for deletion in body["deletions"]:
        failure = _refused_mechanism(deletion)
        if failure is not None:
            found[deletion["name"]] = failure
    for upsertion in body["upsertions"]:
        failure = _refused_mechanism(upsertion) or _refused_numbers(upsertion)
        if failure is not None:
            found[upsertion["name"]] = failure
    pairs = Counter((each["name"], each["mechanism"]) for each in [*body["deletions"], *body["upsertions"]])
    for (user, _), times in pairs.items():
        if times > 1:
            found.setdefault(user, TWICE)
    return found


def altered(config: Config, user: str, body: Body) -> Config | Failure:
    """Make a user's configuration after the request out of the present one. Pure."""
    wanted = dict(config)
    for deletion in body["deletions"]:
        if deletion["name"] == user and wanted.pop(MECHANISM_OF[deletion["mechanism"]].name, None) is None:
            return NOT_THERE
    for upsertion in body["upsertions"]:
        if upsertion["name"] == user:
            mechanism = MECHANISM_OF[upsertion["mechanism"]]
            salted, salt = bytes(upsertion["salted_password"]), bytes(upsertion["salt"])
            wanted[mechanism.name] = scram_keys.encode_credential(
                scram_keys.make_credential(mechanism, salted, salt, upsertion["iterations"])
            )
    return wanted


def _refused_mechanism(each: Body) -> Failure | None:
    if not each["name"]:
        return NO_NAME
    return None if each["mechanism"] in MECHANISM_OF else UNKNOWN_MECHANISM


def _refused_numbers(upsertion: Body) -> Failure | None:
    if upsertion["iterations"] > scram_keys.MAX_ITERATIONS:
        return TOO_MANY
    if upsertion["iterations"] < scram_keys.MIN_ITERATIONS:
        return TOO_FEW
    return TOO_LONG_A_SALT if len(upsertion["salt"]) > scram_keys.MAX_SALT_BYTES else None


def _results(outcomes: dict[str, Outcome]) -> Body:
    return {"results": [{"user": user, **error_fields(outcome)} for user, outcome in outcomes.items()]}


MECHANISM_OF = {mechanism.type_id: mechanism for mechanism in scram_keys.SCRAM_MECHANISMS.values()}

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
            {"mechanism": mechanism.type_id, "iterations": scram_keys.decode_credential(text).iterations}
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
