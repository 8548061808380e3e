"""Kafka's sasl.jaas.config: the login of a process, and the users of PLAIN.

Passwords stay in the values and are hidden in their representation. Source: JaasConfig, JaasContext, PlainServerCallbackHandler.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_node.configs.setting_rules import SettingError

_USER_PREFIX = "user_"

_TOKEN = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([^\s=;"\']+)|([=;]))')
_SHAPE = re.compile(r"ww(?:w=w)*;")
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """Mechanism, user name and password with which a process authenticates to other nodes."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def parse_jaas(text: str, *, setting: str) -> dict[str, str]:
    """Return the options of one login module: MODULE FLAG NAME=VALUE …; Raises SettingError without showing a value."""
    words, shape = _tokens(text, setting)
    if _SHAPE.fullmatch(shape) is None:
        raise SettingError(f'{setting} is not one login module: MODULE required NAME="VALUE" …;')
    return dict(zip(words[2::2], words[3::2], strict=True))


def login(options: Mapping[str, str], mechanism: str, *, setting: str) -> SaslLogin:
    """Return the login in the options of a module. Raises SettingError."""
    try:
        return SaslLogin(mechanism, options["username"], options["password"])
    except KeyError as error:
        raise SettingError(f"{setting} has no {error.args[0]}, with which to authenticate to other nodes") from None


def plain_users(options: Mapping[str, str]) -> dict[str, str]:
    """Return the passwords by user that PLAIN accepts: the options user_NAME."""
    return {name.removeprefix(_USER_PREFIX): value for name, value in options.items() if name.startswith(_USER_PREFIX)}


def _tokens(text: str, setting: str) -> tuple[list[str], str]:
    """Return the words, and their order with the signs `=` and `;`, a "w" for a word; a quoted sign is part of a word."""
    words: list[str] = []
    shape = ""
    position, text = 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SettingError(f"{setting} has a quotation mark that is not closed")
        double, single, word, sign = match.groups()
        shape += sign or "w"
        if word is not None:
            words.append(word)
        elif sign is None:
            words.append(_ESCAPED.sub(r"\1", double if double is not None else single))
        position = match.end()
    return words, shape
