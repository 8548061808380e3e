r"""Principal mapping rules: Kafka's ssl.principal.mapping.rules (KIP-371), which map a certificate's subject to a name.

    DEFAULT                              the subject unchanged
    RULE:pattern/replacement/            the replacement, if the pattern matches the whole subject; $1 is the first group
    RULE:pattern/replacement/L           the same in lower case; U: in upper case

Rules are separated by commas; the first match applies. If none matches, the client has no name.

Kafka's patterns are Java's, these are Python's: syntax that both share (nearly all that is used) means the same, named groups
are written as in Java, and syntax that Python lacks (`\p{…}`) is rejected at start.

Source: SslPrincipalMapper. distinguished_name reads the subject.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

MAX_RULES = 100
"""All of them may be tried for each new connection."""

_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE = re.compile(
    r"\\(?P<literal>.)|\$(?P<digits>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|(?P<lone>\$)", re.DOTALL
)

_CASES: Mapping[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}

_Part = str | int
"""Part of a replacement: a text, or the number of a group."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    parts: tuple[_Part, ...]
    case: str

    def apply(self, subject: str) -> str | None:
        if self.pattern.fullmatch(subject) is None:
            return None
        # Every occurrence, as Java's replaceAll: a pattern that can match the whole subject may also match parts of it.
        return _CASES[self.case](self.pattern.sub(self._replacement, subject))

    def _replacement(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.parts)


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """Rules in order; None is DEFAULT."""

    rules: tuple[_Rule | None, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the rules. Raises ValueError, which names the invalid rule and its error."""
        rules: list[_Rule | None] = []
        rest = text.strip()
        while rest:
            if rest.startswith("RULE:"):
                rule, rest = _take_rule(rest)
                rules.append(rule)
            else:
                word, _, rest = (part.strip() for part in rest.partition(","))
                if word and word != "DEFAULT":
                    raise ValueError(f"the rule {word} must be DEFAULT or RULE:pattern/replacement/[LU]")
                rules += [None] if word else []
        if len(rules) > MAX_RULES:
            raise ValueError(f"{len(rules)} rules exceed the limit of {MAX_RULES}")
        return cls(tuple(rules))

    def name(self, subject: str) -> str | None:
        """Return the name for a subject; None if no rule matches.

        >>> PrincipalRules.parse("RULE:^CN=(.*?),OU=Brokers.*$/$1/L, DEFAULT").name("CN=One,OU=Brokers,O=Steward")
        'one'
        """
        for rule in self.rules:
            if rule is None:
                return subject
            if (name := rule.apply(subject)) is not None:
                return name
        return None


def _take_rule(text: str) -> tuple[_Rule, str]:
    """Split off the first rule, with the comma after it."""
    pattern, rest = _take_part(text, text.removeprefix("RULE:"))
    replacement, rest = _take_part(text, rest)
    case = rest[:1] if rest[:1] in {"L", "U"} else ""
    tail, _, after = rest[len(case) :].partition(",")
    if tail.strip():
        rule = f"{text[: len(text) - len(rest)]}{case}"
        raise ValueError(f"the rule {rule} is followed by {tail.strip()}: separate rules with a comma")
    try:
        compiled = re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"the pattern {pattern} is not a valid regular expression: {error}") from error
    return _Rule(compiled, _parts(replacement, compiled), case), after.strip()


def _take_part(rule: str, text: str) -> tuple[str, str]:
    """Split off the text before the next slash that has no backslash before it."""
    at = 0
    while at < len(text) and text[at] != "/":
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise ValueError(f"the rule {rule} must be RULE:pattern/replacement/[LU]")
    return text[:at], text[at + 1 :]


def _parts(replacement: str, pattern: re.Pattern[str]) -> tuple[_Part, ...]:
    """Parse a replacement: with fewer than twelve groups $12 is group 1 and a 2, with three groups $4 is literal."""
    parts: list[_Part] = []
    at = 0
    for found in _REFERENCE.finditer(replacement):
        parts += [replacement[at : found.start()], *_reference(found, replacement, pattern)]
        at = found.end()
    return (*parts, replacement[at:])


def _reference(found: re.Match[str], replacement: str, pattern: re.Pattern[str]) -> list[_Part]:
    if found["literal"] is not None:
        return [found["literal"]]
    if found["name"] is not None:
        if found["name"] not in pattern.groupindex:
            raise ValueError(
                f"the replacement {replacement} names the group {found['name']}, which the pattern does not have"
            )
        return [pattern.groupindex[found["name"]]]
    if found["digits"] is None:
        raise ValueError(f"in the replacement {replacement} a $ names no group: write \\$ for a literal dollar")
    digits = found["digits"]
    if int(digits[0]) > pattern.groups:
        if pattern.groups == 0:
            raise ValueError(f"the replacement {replacement} names a group, but the pattern has none")
        return [f"${digits}"]
    end = 1
    while end < len(digits) and int(digits[: end + 1]) <= pattern.groups:
        end += 1
    return [int(digits[:end]), digits[end:]]


DEFAULT_RULES = PrincipalRules((None,))
"""Kafka's default: DEFAULT."""
