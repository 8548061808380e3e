"""Golden scripts of KRaft mode: `golden/*.txt` specifies what is written and answered, in order.

The format is that of ZooKeeper mode's scripts (`tests/controller_core/decisions/script.py`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from controller_core.model import events, quorum_events
from controller_core.model.mode_rules import RestartPolicy
from tests.controller_core.decisions.loop import tp
from tests.controller_core.decisions.script import NOTHING, parse
from tests.controller_core.quorum_mode.driver import QuorumDriver
from tests.golden_scripts import assert_golden, golden_scripts, golden_text


def play(text: str) -> str:
    """Run a script's commands on a new cluster; return the script with the current results."""
    driver = QuorumDriver()
    blocks = parse(text)
    for block in blocks:
        driver.forget()
        for command in block.commands:
            verb, *words = command.split()
            COMMANDS[verb](driver, words)
        block.output = driver.lines or [NOTHING]
    return "\n\n".join(block.text() for block in blocks) + "\n"


def _start(driver: QuorumDriver, words: list[str]) -> None:
    """`start 1 2`, `start 1 dirs=11,12`, `start 1 rack=a`."""
    options = dict(word.split("=") for word in words if "=" in word)
    brokers = [int(word) for word in words if "=" not in word]
    driver.start(*brokers, directories=_ids(options.get("dirs", "")), rack=options.get("rack"))


def _launch(driver: QuorumDriver, words: list[str]) -> None:
    """`launch 1`, `launch 1 dirs=11,12`: a process starts, and registers later."""
    options = dict(word.split("=") for word in words[1:])
    driver.launch(int(words[0]), _ids(options.get("dirs", "")))


def _create(driver: QuorumDriver, words: list[str]) -> None:
    """`create orders 0=1,2 min-isr=2 unclean`, or `create orders partitions=3 factor=2`."""
    topic, *wishes = words
    numbers = dict(wish.split("=") for wish in wishes if "=" in wish)
    configs = {"unclean.leader.election.enable": "true"} if "unclean" in wishes else {}
    if "min-isr" in numbers:
        configs["min.insync.replicas"] = numbers.pop("min-isr")
    if "partitions" in numbers:
        counts = {"partitions": int(numbers["partitions"]), "replication_factor": int(numbers["factor"])}
        driver.create(topic, configs=configs, **counts)
    else:
        driver.create(topic, [_ids(numbers[partition]) for partition in sorted(numbers, key=int)], configs=configs)


def _elect(driver: QuorumDriver, words: list[str]) -> None:
    """`elect preferred orders-0 …`, `elect unclean orders-0 …`; without names, all partitions."""
    driver.submit(events.ElectLeaders(tuple(map(tp, words[1:])) or None, unclean=words[0] == "unclean"))


def _configure(driver: QuorumDriver, words: list[str]) -> None:
    """`configure orders min.insync.replicas=1`, `configure default min.insync.replicas=2`."""
    values = dict(word.split("=") for word in words[1:])
    driver.configure("" if words[0] == "default" else words[0], values)


def _disable_restarts(driver: QuorumDriver, _words: list[str]) -> None:
    driver.cluster.restarts = RestartPolicy(
        admits_same_directories=False, admits_after_shutdown=False, elects_suspected_last=False
    )


def _ids(word: str) -> list[int]:
    return [int(broker) for broker in word.split(",") if broker]


COMMANDS: Mapping[str, Callable[[QuorumDriver, list[str]], object]] = {
    "start": _start,
    "launch": _launch,
    "register": lambda driver, words: driver.register(int(words[0])),
    "heartbeat": lambda driver, words: driver.heartbeat(int(words[0]), lag=int(words[1]) if len(words) > 1 else 0),
    "heartbeats": lambda driver, _: driver.beat_all(),
    "ask-fence": lambda driver, words: driver.heartbeat(int(words[0]), wants_fence=True),
    "kill": lambda driver, words: driver.kill(*map(int, words)),
    "disconnect": lambda driver, words: driver.disconnect(int(words[0])),
    "expire": lambda driver, _: driver.expire(),
    "shutdown": lambda driver, words: driver.shut_down(int(words[0])),
    "unregister": lambda driver, words: driver.submit(events.UnregisterBroker(int(words[0]))),
    "fail-dir": lambda driver, words: driver.fail_directory(int(words[0]), int(words[1])),
    "assign-dir": lambda driver, words: driver.assign_directory(int(words[0]), words[1], int(words[2])),
    "create": _create,
    "partitions": lambda driver, words: driver.submit(
        events.CreatePartitions((events.NewPartitions(words[0], int(words[1])),))
    ),
    "delete": lambda driver, words: driver.submit(events.DeleteTopics(tuple(words))),
    "alter-isr": lambda driver, words: driver.alter_isr(words[0], _ids(words[1])),
    "reassign": lambda driver, words: driver.reassign({words[0]: _ids(words[1])}),
    "cancel": lambda driver, words: driver.reassign({words[0]: None}),
    "elect": _elect,
    "elect-unclean-leaders": lambda driver, _: driver.submit(quorum_events.ElectUncleanLeaders(1000)),
    "balance": lambda driver, words: driver.submit(events.BalanceLeaders(int(words[0]))),
    "configure": _configure,
    "producer-ids": lambda driver, words: driver.submit(
        events.AllocateProducerIds(int(words[0]), driver.processes[int(words[0])].epoch)
    ),
    "kafkas-restarts": _disable_restarts,
}
"""Commands of scripts. `expire` lets a session pass; `kafkas-restarts` turns the settings of ADR 57 off."""


@pytest.mark.parametrize("script", golden_scripts(__file__), ids=lambda script: script.stem)
def test_the_conversation_is_as_specified(script: Path) -> None:
    """Golden script: text in, text out; a reviewer reads the diff as the specification."""
    assert_golden(script, play(golden_text(script)))
