"""ssl.principal.mapping.rules compared with Kafka (KIP-371, SslPrincipalMapper)."""

import pytest

from kafka_wire.net.principal_rules import MAX_RULES, PrincipalRules
from tests.kafka_wire.sasl.judge import JavaRefusedError, SaslJudge

SUBJECT = "CN=Duke,OU=JavaSoft,O=Sun Microsystems"

CASES = [
    ("DEFAULT", SUBJECT, SUBJECT),
    (" DEFAULT , ", SUBJECT, SUBJECT),
    ("", SUBJECT, None),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", SUBJECT, "duke@javasoft"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/U", SUBJECT, "DUKE@JAVASOFT"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$4/", SUBJECT, "Duke@$4"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$12/", SUBJECT, "Duke@Duke2"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$0/", SUBJECT, SUBJECT),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$02/", SUBJECT, "JavaSoft"),
    ("RULE:^CN=(?<who>.*?),.*$/${who}/", SUBJECT, "Duke"),
    ("RULE:^CN=(.*?),.*$/\\$1\\/\\x/", SUBJECT, "$1/x"),
    ("RULE:^CN=nobody$/nobody/,RULE:^CN=(.*?),OU=JavaSoft.*$/$1/,DEFAULT", SUBJECT, "Duke"),
    ("RULE:^CN=nobody$/nobody/ , DEFAULT", SUBJECT, SUBJECT),
    ("RULE:^CN=nobody$/nobody/", SUBJECT, None),
    ("RULE:CN=Duke/part/", SUBJECT, None),
    ("RULE:.*/x/", SUBJECT, "xx"),
    ("RULE:CN=(.*?)/[$1]/", SUBJECT, "[]Duke,OU=JavaSoft,O=Sun Microsystems"),
    ("RULE:^CN=(.*?)(,T=(.*?))?,OU=.*$/$1-$3/", SUBJECT, "Duke-"),
    ("RULE:^CN=a\\/b,OU=(.*?)$/$1/", "CN=a/b,OU=c", "c"),
    ("RULE:^CN=(Ä.*?)$/$1/L", "CN=ÄÖÜ", "äöü"),
]

REJECTED = [
    "CN",
    "DEFAULTS",
    "default",
    "RULE:^CN=(.*)$",
    "RULE:^CN=(.*)$/$1",
    "RULE:^CN=(.*)$/$1/X",
    "RULE:^CN=(.*)$/$1/L/",
    "RULE:^CN=(.*)$/$1/LU",
    "RULE:^CN=(.*)$/$1/ DEFAULT",
    "RULE:^CN=(.*$/$1/",
]
"""Rules that Kafka also rejects at start."""

REJECTED_AT_START = ["RULE:^CN=.*$/$1/", "RULE:^CN=(.*)$/${who}/", "RULE:^CN=(.*)$/a$/"]
"""Rules that Kafka only rejects when it reads a certificate."""


@pytest.mark.parametrize(("rules", "subject", "expected"), CASES)
def test_the_first_matching_rule_returns_the_name(rules: str, subject: str, expected: str | None) -> None:
    """The tables for `ssl.principal.mapping.rules` in Kafka's documentation, and ambiguous cases."""
    assert PrincipalRules.parse(rules).name(subject) == expected


@pytest.mark.parametrize("rules", [*REJECTED, *REJECTED_AT_START, "DEFAULT," * (MAX_RULES + 1)])
def test_invalid_rules_are_rejected_at_start(rules: str) -> None:
    """A misread rule could give a peer the wrong principal."""
    with pytest.raises(ValueError, match=r"rule|pattern|replacement"):
        PrincipalRules.parse(rules)


@pytest.mark.java
def test_kafka_returns_the_same_names() -> None:
    """SslPrincipalMapper raises an error if no rule matches."""
    with SaslJudge() as judge:
        for rules, subject, expected in CASES:
            if expected is None:
                with pytest.raises(JavaRefusedError, match="NoMatchingRule"):
                    judge.ask("principal", rules, subject)
            else:
                assert judge.ask("principal", rules, subject).decode() == expected, rules
        for rules in REJECTED + REJECTED_AT_START:
            with pytest.raises(JavaRefusedError):
                judge.ask("principal", rules, SUBJECT)
