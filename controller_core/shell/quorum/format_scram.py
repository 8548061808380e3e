"""SCRAM users of a new quorum: the arguments of --add-scram, and their metadata records.

An argument is MECHANISM=[name=USER,password=PASSWORD], with salt (base64), iterations, and saltedpassword (base64) instead of
password. Source: ScramParser, ScramFormatter of Kafka.
"""

import base64
import binascii
import re
from collections.abc import Callable

from kafka_wire import Body
from kafka_wire.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_MECHANISMS, make_credential


class ScramArgumentError(ValueError):
    """A malformed argument; the message does not contain passwords."""


def parse_scram(argument: str, draw_salt: Callable[[], bytes]) -> Body:
    """Return the body of the UserScramCredentialRecord. Raises ScramArgumentError."""
    name, equals, configuration = argument.strip().partition("=")
    if not equals:
        raise ScramArgumentError(f"Failed to find equals sign in SCRAM argument {name!r}.")
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        raise ScramArgumentError(f"The add-scram mechanism {name} is not supported.")
    if not (configuration.startswith("[") and configuration.endswith("]")) or len(configuration) == 1:
        raise ScramArgumentError("Expected configuration string to start with [ and to end with ].")
    values = _components(configuration[1:-1])
    user = values.pop("name", None)
    if user is None:
        raise ScramArgumentError("You must supply 'name' to add-scram.")
    given_salt = _decoded("salt", values.pop("salt", None))
    iterations = _iterations(values.pop("iterations", None), name)
    password, salted = values.pop("password", None), values.pop("saltedpassword", None)
    if values:
        raise ScramArgumentError(f"Unknown SCRAM configurations: {', '.join(sorted(values))}")
    salt = draw_salt() if given_salt is None else given_salt
    if password is not None:
        salted_password = mechanism.salted_password(password, salt, iterations)
    elif salted is None:
        raise ScramArgumentError("You must supply one of 'password' or 'saltedpassword' to add-scram.")
    elif given_salt is None:
        raise ScramArgumentError("You must supply 'salt' with 'saltedpassword' to add-scram.")
    else:
        salted_password = _decoded("saltedpassword", salted) or b""
    credential = make_credential(mechanism, salted_password, salt, iterations)
    return {
        "name": user,
        "mechanism": mechanism.type_id,
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
        "iterations": credential.iterations,
    }


def _components(text: str) -> dict[str, str]:
    """Return the values by name; quotation marks around a value are not part of it."""
    found: dict[str, str] = {}
    for part in re.sub(",+$", "", text).split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise ScramArgumentError("A component of the SCRAM argument has no equals sign.")
        is_quoted = len(value) > 1 and value.startswith('"') and value.endswith('"')
        found[name] = value[1:-1] if is_quoted else value
    return found


def _iterations(text: str | None, mechanism: str) -> int:
    if text is None:
        return MIN_ITERATIONS
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise ScramArgumentError(f"Failed to parse iterations count: {text}")
    if int(text) < MIN_ITERATIONS:
        raise ScramArgumentError(f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism}.")
    if int(text) > MAX_ITERATIONS:
        raise ScramArgumentError(f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism}.")
    return int(text)


def _decoded(name: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4 if "=" not in text else 0), validate=True)
    except (binascii.Error, ValueError):
        raise ScramArgumentError(f"Failed to decode given {name}: it is not base64.") from None
