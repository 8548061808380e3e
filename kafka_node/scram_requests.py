"""Rules of AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554). Pure.

A user's credentials are texts by the mechanism's name, as `kafka_wire.sasl.scram_keys` encodes them. If one alteration of a user is refused,
none of the user's alterations is applied. Source: ZkAdminManager.alterUserScramCredentials, describeUserScramCredentials.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from kafka_node.outcomes import Outcome, error_fields
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.sasl import scram_keys

Config = Mapping[str, str]

MECHANISM_OF = {mechanism.type_id: mechanism for mechanism in scram_keys.SCRAM_MECHANISMS.values()}

DESCRIBED_EMPTY_NAME = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
EMPTY_NAME = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
UNKNOWN_MECHANISM = Failure(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW_ITERATIONS = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY_ITERATIONS = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
SALT_TOO_LONG = Failure(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"The salt has over {scram_keys.MAX_SALT_BYTES} bytes")
DUPLICATE_ALTERATION = Failure(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
MISSING_CREDENTIAL = Failure(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def altered_users(body: Body) -> list[str]:
    """Return the users that a request to alter credentials names, each once."""
    return list(dict.fromkeys(change["name"] for change in _alterations(body)))


def described_users(body: Body) -> list[str]:
    """Return the users that a request to describe credentials names; without any it is for all users."""
    return [user["name"] for user in body["users"] or []]


def _alterations(body: Body) -> list[Body]:
    return [*body["deletions"], *body["upsertions"]]


def refused(body: Body) -> dict[str, Failure]:
    """Return the users with an alteration that is invalid regardless of their credentials. Pure."""
    found: dict[str, Failure] = {}
    for deletion in body["deletions"]:
        failure = _refused_mechanism(deletion)
        if failure is not None:
            found[deletion["name"]] = failure
    for upsertion in body["upsertions"]:
        failure = _refused_mechanism(upsertion) or _refused_numbers(upsertion)
        if failure is not None:
            found[upsertion["name"]] = failure
    pairs = Counter((change["name"], change["mechanism"]) for change in _alterations(body))
    for (user, _), times in pairs.items():
        if times > 1:
            found.setdefault(user, DUPLICATE_ALTERATION)
    return found


def altered(config: Config, user: str, body: Body) -> Config | Failure:
    """Apply the request to a user's configuration. Pure."""
    wanted = dict(config)
    for deletion in body["deletions"]:
        if deletion["name"] == user and wanted.pop(MECHANISM_OF[deletion["mechanism"]].name, None) is None:
            return MISSING_CREDENTIAL
    for upsertion in body["upsertions"]:
        if upsertion["name"] == user:
            mechanism = MECHANISM_OF[upsertion["mechanism"]]
            salted, salt = bytes(upsertion["salted_password"]), bytes(upsertion["salt"])
            wanted[mechanism.name] = scram_keys.encode_credential(
                scram_keys.make_credential(mechanism, salted, salt, upsertion["iterations"])
            )
    return wanted


def _refused_mechanism(change: Body) -> Failure | None:
    if not change["name"]:
        return EMPTY_NAME
    return None if change["mechanism"] in MECHANISM_OF else UNKNOWN_MECHANISM


def _refused_numbers(upsertion: Body) -> Failure | None:
    if upsertion["iterations"] > scram_keys.MAX_ITERATIONS:
        return TOO_MANY_ITERATIONS
    if upsertion["iterations"] < scram_keys.MIN_ITERATIONS:
        return TOO_FEW_ITERATIONS
    return SALT_TOO_LONG if len(upsertion["salt"]) > scram_keys.MAX_SALT_BYTES else None


def described(user: str, config: Config) -> list[Body] | Failure:
    """List a user's credentials. Pure."""
    credentials = [
        (mechanism, config[mechanism.name]) for mechanism in MECHANISM_OF.values() if mechanism.name in config
    ]
    if not credentials:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return Failure(ErrorCode.RESOURCE_NOT_FOUND, message)
    try:
        return [
            {"mechanism": mechanism.type_id, "iterations": scram_keys.decode_credential(text).iterations}
            for mechanism, text in credentials
        ]
    except ValueError as error:
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid stored credential of {user}: {error}")


def described_twice(user: str) -> Failure:
    """Return the error for a user that a request to describe names twice."""
    message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return Failure(ErrorCode.DUPLICATE_RESOURCE, message)


def described_body(named: Sequence[str], configs: Mapping[str, Config]) -> Body:
    """Answer a description by the configurations of the named users; without names, of all users. Pure."""
    outcomes: dict[str, Outcome | list[Body]] = {user: described(user, config) for user, config in configs.items()}
    for name, times in Counter(named).items():
        if not name or times > 1:
            outcomes[name] = described_twice(name) if name else DESCRIBED_EMPTY_NAME
    # Every named user has a result; a list of all users omits those without credentials.
    shown = dict.fromkeys(named) if named else [user for user, outcome in outcomes.items() if not _has_none(outcome)]
    return {**error_fields(None), "results": [_result(user, outcomes[user]) for user in shown]}


def describe_users(body: Body, configs: Mapping[str, Config]) -> Body:
    """Answer a description by the configurations of all users. Pure."""
    named = described_users(body)
    return described_body(named, {name: configs.get(name, {}) for name in named or configs})


def _has_none(outcome: Outcome | list[Body]) -> bool:
    return isinstance(outcome, Failure) and outcome.code is ErrorCode.RESOURCE_NOT_FOUND


def _result(user: str, outcome: Outcome | list[Body]) -> Body:
    if isinstance(outcome, list):
        return {"user": user, **error_fields(None), "credential_infos": outcome}
    return {"user": user, **error_fields(outcome), "credential_infos": []}
