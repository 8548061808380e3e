"""Topic names and configs compared with Kafka's Topic, ConfigDef and LogConfig."""

import random
from typing import Any

import pytest

from kafka_node.configs import topic_config_table_4
from kafka_node.configs.config_rules import ConfigKey, ConfigType, InvalidValue, java_string, parse
from kafka_node.configs.topic_config_table import ROWS, TOPIC_CONFIGS
from kafka_node.configs.topic_configs import ConfigContext, topic_config_error
from kafka_node.topic_names import collisions, illegal_name_reason
from lab.downloads.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION, kafka_jars
from tests.controller_core.rules.judged.conftest import Judge
from tools.extract_topic_configs import render

pytestmark = pytest.mark.java

MAPS = 5_000

WHOLE = [
    "0",
    "1",
    "-1",
    "-2",
    "-3",
    "+5",
    " 7 ",
    "14",
    "13",
    "4",
    "3",
    "9",
    "10",
    "17",
    "18",
    "22",
    "23",
    "-131072",
    "-131073",
]
LIMITS = ["2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"]
DOUBLES = [
    "0.5",
    "1.0",
    "1.5",
    "-0.1",
    "-0.0",
    "1e10",
    "1.25e-5",
    "NaN",
    "Infinity",
    "1d",
    "0x1p3",
    ".5",
    "5.",
    "1e",
    "",
    "1_0",
]
WORDS = [
    "true",
    "False",
    " TRUE",
    "yes",
    "delete",
    "compact",
    "compact,delete",
    "delete , shred",
    ",",
    "",
    "*",
    "1:2",
    "1:2, 3:4",
    "1:x",
]
NAMES = [
    "gzip",
    "GZIP",
    "producer",
    "CreateTime",
    "LogAppendTime",
    "3.0-IV1",
    "3.0",
    "3.0.1",
    "3.0.",
    "0.10.0.1",
    "0.10",
    "9.9",
    ".",
    "3..",
    "0.8.2",
]
STRANGE = [
    "\u00a0 1",
    "\u0661\u0662",
    "\U0001d7ce",
    "fal\u017fe",
    "1\u2003",
    "\x001",
    "\u2028",
    "a\tb",
    "tr\u00fce",
    "00012",
    "-",
    "+",
    "--1",
]
TEXTS = [*WHOLE, *LIMITS, *DOUBLES, *WORDS, *NAMES, *STRANGE]


def refusal(answer: Any) -> tuple[str, bool] | None:
    """Parse a result that is an error or null."""
    return None if answer is None else (answer["refused"], answer["of_value"])


def ours(case: dict[str, Any]) -> tuple[str, bool] | None:
    """Validate a case's configs with the controller's code."""
    setting = ConfigContext(existing=case["existing"], remote_storage=case["remote"], zookeeper=case["zookeeper"])
    error = topic_config_error(case["configs"], setting)
    return None if error is None else (error.message, error.of_value)


def case_of(configs: dict[str, str], *, remote: bool = False, zookeeper: bool = True) -> dict[str, Any]:
    """Build a case for the reference."""
    return {"configs": configs, "existing": {}, "remote": remote, "zookeeper": zookeeper}


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_every_config_accepts_and_refuses_the_same_values_as_kafka(judge: Judge, name: str) -> None:
    """LogConfig.validate as a ZooKeeper-mode broker calls it: the same messages for the same values."""
    cases = [case_of({name: text}) for text in TEXTS]

    expected = [refusal(answer) for answer in judge.ask("config", cases)]

    assert [ours(case) for case in cases] == expected


def test_maps_with_several_errors_are_refused_with_the_same_one(judge: Judge) -> None:
    """Of several invalid values, the first by Kafka's order of definition is reported."""
    source = random.Random(39)
    names = sorted(TOPIC_CONFIGS)
    cases = [
        case_of({name: source.choice(TEXTS) for name in source.sample(names, source.randint(1, 6))})
        for _ in range(MAPS)
    ]

    expected = [refusal(answer) for answer in judge.ask("config", cases)]

    assert [ours(case) for case in cases] == expected


def test_configs_of_tiered_storage_are_refused_with_the_same_errors(judge: Judge) -> None:
    """LogConfig.validateTopicLogConfigValues, in ZooKeeper mode and KRaft mode, with the system setting on and off."""
    source = random.Random(405)
    values = {
        "remote.storage.enable": ["true", "false"],
        "remote.log.copy.disable": ["true", "false"],
        "remote.log.delete.on.disable": ["true", "false"],
        "cleanup.policy": ["delete", "compact", "delete,compact"],
        "retention.ms": ["-1", "5", "100"],
        "local.retention.ms": ["-2", "-1", "5", "200"],
        "retention.bytes": ["-3", "-1", "5", "100"],
        "local.retention.bytes": ["-2", "-1", "5", "200"],
        "min.compaction.lag.ms": ["0", "5"],
        "max.compaction.lag.ms": ["4", "6"],
    }
    cases = []
    for _ in range(MAPS):
        chosen = source.sample(sorted(values), source.randint(1, len(values)))
        case = case_of({name: source.choice(values[name]) for name in chosen}, remote=source.random() < 0.7)
        case["zookeeper"] = source.random() < 0.5
        case["existing"] = source.choice([{}, {"remote.storage.enable": "true"}, {"remote.storage.enable": " true"}])
        cases.append(case)

    expected = [refusal(answer) for answer in judge.ask("config", cases)]

    assert [ours(case) for case in cases] == expected


def test_an_unknown_name_is_refused_with_the_same_message(judge: Judge) -> None:
    """LogConfig.validateNames precedes the validation of values."""
    cases = [case_of({"retention.ms": "abc", name: "1"}) for name in ("foo", "", "Retention.ms", "log.retention.ms")]

    expected = [refusal(answer) for answer in judge.ask("config", cases)]

    assert [ours(case) for case in cases] == expected


def printed(kind: ConfigType, text: str) -> str:
    """Parse a text and format the value, or return Kafka's error."""
    try:
        return java_string(parse(kind, text))
    except ValueError as wrong:
        return InvalidValue("judged", text, str(wrong)).message


@pytest.mark.parametrize("kind", [kind for kind in ConfigType if kind not in {ConfigType.CLASS, ConfigType.PASSWORD}])
def test_values_are_parsed_and_formatted_as_by_java(judge: Judge, kind: ConfigType) -> None:
    """ConfigDef.parseType and toString. Java looks up a CLASS and hides a PASSWORD."""
    answers = judge.ask("parse", [{"type": kind.value, "text": text} for text in TEXTS])

    expected = [answer["refused"] if isinstance(answer, dict) else answer for answer in answers]

    assert [printed(kind, text) for text in TEXTS] == expected


def test_doubles_are_parsed_as_by_java(judge: Judge) -> None:
    """Values are compared: Java before 19 prints some doubles with more digits than needed."""
    source = random.Random(17)
    texts = [f"{source.randint(-9999, 9999)}e{source.randint(-330, 310)}" for _ in range(MAPS)]
    answers = judge.ask("parse", [{"type": "DOUBLE", "text": text} for text in texts])

    assert [parse(ConfigType.DOUBLE, answer) for answer in answers] == [
        parse(ConfigType.DOUBLE, text) for text in texts
    ]


@pytest.mark.parametrize(
    ("version", "rows"), [(KAFKA_VERSION, ROWS), (NEWEST_KAFKA_VERSION, topic_config_table_4.ROWS)]
)
def test_the_tables_are_generated_from_the_jars(version: str, rows: tuple[ConfigKey, ...]) -> None:
    """Generating a table again gives the same rows."""
    drawn: dict[str, Any] = {}
    exec(render(kafka_jars(version)), drawn)  # output of a tool of this repository

    assert drawn["ROWS"] == rows


def test_defaults_are_the_brokers_defaults(judge: Judge) -> None:
    """The table is generated from LogConfig; a broker without settings validates an empty map with the same defaults."""
    cases = [case_of({row.name: row.default}) for row in ROWS]

    assert judge.ask("config", cases) == [None] * len(ROWS)


def test_names_are_refused_and_collide_as_in_kafka(judge: Judge) -> None:
    """Topic.validate, hasCollisionChars and hasCollision."""
    source = random.Random(249)
    letters = ["a", "Z", "0", ".", "_", "-", " ", "/", "\u00e9", "\U0001f600", "\n"]
    names = ["", ".", "..", "...", "x" * 249, "x" * 250, "\U0001f600" * 124, "\U0001f600" * 125]
    names += [
        "".join(source.choices(letters, [4, 1, 1, 3, 3, 1, 0.2, 0.2, 0.2, 0.2, 0.2], k=source.randint(1, 6)))
        for _ in range(MAPS)
    ]
    others = ["a.a", "a_a", "a-a", "a.", "a_", ".a", "_a", "__", "._", "a", "aa"]
    answers = judge.ask("name", [{"name": name, "others": others} for name in names])

    for name, answer in zip(names, answers, strict=True):
        if (reason := illegal_name_reason(name)) is not None:
            assert answer == {"refused": f"Topic name is invalid: {reason}", "of_value": False}
        else:
            assert sorted(set(answer) - {name}) == collisions(name, others)
