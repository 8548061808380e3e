r"""What a client is called by the subject of its certificate: Kafka's ssl.principal.mapping.rules (KIP-371).

    DEFAULT                              the subject as it is
    RULE:pattern/replacement/            the replacement, where the pattern fits the whole subject; $1 is the first group
    RULE:pattern/replacement/L           the same in lower case; U: in upper case

Rules stand behind each other with commas between; the first that fits counts. Where none fits the client has no name.

Patterns are Java's there and Python's here: what the two write alike (nearly all that anybody writes) means the same, groups with
names are taken as Java writes them, and what Python does not know (`\p{…}`) is refused at the start.

Source: SslPrincipalMapper. Leaves out reading certificates (distinguished_name).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

MAX_RULES = 100
"""Each of them may be tried at each new connection."""

_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE = re.compile(
    r"\\(?P<literal>.)|\$(?P<digits>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|(?P<lone>\$)", re.DOTALL
)

_CASES: Mapping[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}

_Part = str | int
"""Of a replacement: a text, or the number of a group."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    parts: tuple[_Part, ...]
    case: str

    def apply(self, subject: str) -> str | None:
        if self.pattern.fullmatch(subject) is None:
            return None
        # Whatever it finds in the subject, as Java's replaceAll: a pattern may find less than all of what it can fit.
        return _CASES[self.case](self.pattern.sub(self._replacement, subject))

    def _replacement(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.parts)


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """Rules in their order; None stands for DEFAULT."""

    rules: tuple[_Rule | None, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the rules. Raises ValueError, which says what is wrong with which of them."""
        rules: list[_Rule | None] = []
        rest = text.strip()
        while rest:
            if rest.startswith("RULE:"):
                rule, rest = _take_rule(rest)
                rules.append(rule)
            else:
                word, _, rest = (part.strip() for part in rest.partition(","))
                if word and word != "DEFAULT":
                    raise ValueError(f"the rule {word} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
                rules += [None] if word else []
        if len(rules) > MAX_RULES:
            raise ValueError(f"{len(rules)} rules are more than the {MAX_RULES} that are taken")
        return cls(tuple(rules))

    def name(self, subject: str) -> str | None:
        """Name who has a certificate with this subject; None: no rule fits.

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
    """Cut one rule off the beginning, with the comma behind it."""
    pattern, rest = _take_part(text, text.removeprefix("RULE:"))
    replacement, rest = _take_part(text, rest)
    case = rest[:1] if rest[:1] in {"L", "U"} else ""
    tail, _, after = rest[len(case) :].partition(",")
    if tail.strip():
        raise ValueError(
            f"behind the rule {text[: len(text) - len(rest)]}{case} stands {tail.strip()}: a comma is needed"
        )
    try:
        compiled = re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"the pattern {pattern} cannot be read: {error}") from error
    return _Rule(compiled, _parts(replacement, compiled), case), after.strip()


def _take_part(rule: str, text: str) -> tuple[str, str]:
    """Cut off what stands before the next slash that has no backslash before it."""
    at = 0
    while at < len(text) and text[at] != "/":
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise ValueError(f"the rule {rule} is not RULE:pattern/replacement/[LU]")
    return text[:at], text[at + 1 :]


def _parts(replacement: str, pattern: re.Pattern[str]) -> tuple[_Part, ...]:
    """Read a replacement: $12 is group 1 and a 2 where there are less than twelve groups, $4 is itself where there are three."""
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
                f"the replacement {replacement} names the group {found['name']}, which the pattern has not"
            )
        return [pattern.groupindex[found["name"]]]
    if found["digits"] is None:
        raise ValueError(f"in the replacement {replacement} a $ names no group: a dollar itself is \\$")
    digits = found["digits"]
    if int(digits[0]) > pattern.groups:
        if pattern.groups == 0:
            raise ValueError(f"the replacement {replacement} names a group, and the pattern has none")
        return [f"${digits}"]
    end = 1
    while end < len(digits) and int(digits[: end + 1]) <= pattern.groups:
        end += 1
    return [int(digits[:end]), digits[end:]]


AS_IT_IS = PrincipalRules((None,))
"""Kafka's default: DEFAULT."""
