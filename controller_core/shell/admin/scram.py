"""AlterUserScramCredentials, version 0: what servers keep of users' passwords, set and removed (KIP-554).

The client salts the password, so the password itself never comes here. A user of whom one alteration is refused is not altered at all;
one user's refusal refuses no other.

Source: ZkAdminManager.alterUserScramCredentials. Leaves out describing (scram_users), the store (metadata_stores) and who may ask.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller_core.model.quota import QuotaEntity
from controller_core.shell.admin.kept import where_kept
from controller_core.shell.admin.outcomes import NOT_CONTROLLER, Outcome, error_fields
from controller_core.shell.admin.scram_users import MECHANISM_OF, describe_user_scram_credentials
from controller_core.shell.front.handler import OwnHandler
from controller_core.shell.metadata_stores import Config, EntityConfigStore
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.sasl.scram_keys import (
    MAX_ITERATIONS,
    MAX_SALT_BYTES,
    MIN_ITERATIONS,
    encode_credential,
    make_credential,
)

NO_NAME = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
UNKNOWN_MECHANISM = Failure(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
TOO_LONG_A_SALT = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt has over {MAX_SALT_BYTES} bytes")
TWICE = Failure(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NOT_THERE = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def scram_handlers(
    configs: EntityConfigStore | None, is_controller: Callable[[], Awaitable[bool]]
) -> Mapping[ApiKey, OwnHandler]:
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
            wanted[mechanism.name] = encode_credential(
                make_credential(mechanism, salted, salt, upsertion["iterations"])
            )
    return wanted


def _refused_mechanism(each: Body) -> Failure | None:
    if not each["name"]:
        return NO_NAME
    return None if each["mechanism"] in MECHANISM_OF else UNKNOWN_MECHANISM


def _refused_numbers(upsertion: Body) -> Failure | None:
    if upsertion["iterations"] > MAX_ITERATIONS:
        return TOO_MANY
    if upsertion["iterations"] < MIN_ITERATIONS:
        return TOO_FEW
    return TOO_LONG_A_SALT if len(upsertion["salt"]) > MAX_SALT_BYTES else None


def _results(outcomes: dict[str, Outcome]) -> Body:
    return {"results": [{"user": user, **error_fields(outcome)} for user, outcome in outcomes.items()]}
