"""Golden scripts: commands in, the whole conversation out.

A script is a text file of blocks. Each block has comments (`#`), commands, a line of dashes, and the results of the commands:
writes, requests to brokers and responses to the caller, in the order of events.

    # The leader fails.
    kill 1
    ----
    brokers [2,3]
    ...

`REWRITE_GOLDEN=1 pytest …/test_golden.py` writes the current results; the diff is then read as a change of the specification.
Every message is delivered at once. `answer-stop`, `answer-refused` and `answer-replicas` process the held answers: those to StopReplica,
refusals, and reports of failed log directories.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller_core.model import events, zookeeper_events
from tests.controller_core.decisions.driver import CrashError, Driver, tp

RULE = "----"
NOTHING = "(nothing)"


@dataclass
class Block:
    """Commands and their results."""

    comments: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Format the block."""
        lines = [*self.comments, *self.commands]
        return "\n".join([*lines, RULE, *self.output] if self.commands else lines)


def parse(text: str) -> list[Block]:
    """Parse a script. Blocks are separated by blank lines."""
    blocks = []
    for paragraph in text.strip().split("\n\n"):
        block, is_output = Block(), False
        for line in paragraph.splitlines():
            if is_output:
                block.output.append(line)
            elif line == RULE:
                is_output = True
            else:
                (block.comments if line.startswith("#") else block.commands).append(line)
        blocks.append(block)
    return blocks


def play(text: str) -> str:
    """Run a script's commands on a new cluster; return the script with the current results."""
    driver = Driver()
    driver.holds_answers = True
    blocks = parse(text)
    for block in blocks:
        driver.forget()
        for command in block.commands:
            _run(driver, command)
        block.output = driver.lines or [NOTHING]
    return "\n\n".join(block.text() for block in blocks) + "\n"


def _run(driver: Driver, command: str) -> None:
    verb, *words = command.split()
    try:
        COMMANDS[verb](driver, words)
    except CrashError:
        return  # The driver has recorded it.
    except KeyError as error:
        raise ValueError(f"cannot run {command!r}") from error


def _create(driver: Driver, words: list[str]) -> None:
    """`create orders 0=1,2 1=2,1 [unclean]`, or `create orders partitions=3 factor=2`."""
    topic, *wishes = words
    configs = {"unclean.leader.election.enable": "true"} if "unclean" in wishes else {}
    numbers = dict(wish.split("=") for wish in wishes if "=" in wish)
    if "partitions" in numbers:
        driver.create(
            topic, partitions=int(numbers["partitions"]), replication_factor=int(numbers["factor"]), configs=configs
        )
    else:
        driver.create(topic, _assignment(numbers), configs=configs)


def _find(driver: Driver, words: list[str]) -> None:
    """`find orders 0=1,1000`: a broker has created a topic."""
    driver.find(words[0], _assignment(dict(word.split("=") for word in words[1:])))


def _answer_stop(driver: Driver, words: list[str]) -> None:
    """`answer-stop`, `answer-stop 2`, `answer-stop 2 failing orders-0`."""
    broker = int(words[0]) if words else None
    driver.answer(broker, dict.fromkeys(words[2:], "KAFKA_STORAGE_ERROR"))


def _notify_isr(driver: Driver, partition: str, isr: list[int]) -> None:
    """`notify-isr orders-0 1,2`: the leader writes its ISR and leaves a notification."""
    driver.write_isr(partition, isr)
    driver.notify_isrs(partition)


def _elect(driver: Driver, words: list[str]) -> None:
    """`elect preferred orders-0 …`, `elect unclean orders-0 …`; without names, all partitions."""
    partitions = tuple(map(tp, words[1:])) or None
    driver.submit(events.ElectLeaders(partitions, unclean=words[0] == "unclean"))


def _assignment(numbers: Mapping[str, str]) -> list[list[int]]:
    return [_ids(numbers[partition]) for partition in sorted(numbers, key=int)]


def _ids(word: str) -> list[int]:
    return [int(broker) for broker in word.split(",")]


def _numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words]


COMMANDS: Mapping[str, Callable[[Driver, list[str]], object]] = {
    "start": lambda driver, words: driver.start(*_numbers(words)),
    "kill": lambda driver, words: driver.kill(*_numbers(words)),
    "bounce": lambda driver, words: driver.bounce(*_numbers(words)),
    "refuse": lambda driver, words: driver.refuse(*_numbers(words)),
    "create": _create,
    "find": _find,
    "partitions": lambda driver, words: driver.submit(
        events.CreatePartitions((events.NewPartitions(words[0], int(words[1])),))
    ),
    "delete": lambda driver, words: driver.delete(*words),
    "queue-deletion": lambda driver, words: driver.submit(zookeeper_events.DeletionsRead(tuple(words))),
    "answer-stop": _answer_stop,
    "answer-replicas": lambda driver, words: driver.answer(int(words[0])),
    "answer-refused": lambda driver, words: driver.answer(int(words[0])),
    "unregister": lambda driver, words: driver.unregister(int(words[0])),
    "find-strays": lambda driver, words: driver.find_strays(int(words[0]), *words[1:]),
    "shutdown": lambda driver, words: driver.shut_down(int(words[0])),
    "alter-isr": lambda driver, words: driver.alter_isr(words[0], _ids(words[1])),
    "write-isr": lambda driver, words: driver.intrude(lambda: driver.write_isr(words[0], _ids(words[1]))),
    "notify-isr": lambda driver, words: _notify_isr(driver, words[0], _ids(words[1])),
    "fail-dir": lambda driver, words: driver.fail_dir(int(words[0]), *words[1:]),
    "change": lambda driver, words: driver.change(words[0], _assignment(dict(word.split("=") for word in words[1:]))),
    "reassign": lambda driver, words: driver.reassign({words[0]: _ids(words[1])}),
    "cancel": lambda driver, words: driver.reassign({words[0]: None}),
    "elect": _elect,
    "request-moves": lambda driver, words: driver.request_moves(
        {partition: _ids(target) for partition, target in (word.split("=") for word in words)}
    ),
    "request-elections": lambda driver, words: driver.request_elections(*words),
    "balance": lambda driver, words: driver.submit(events.BalanceLeaders(int(words[0]))),
    "producer-ids": lambda driver, words: driver.submit(
        events.AllocateProducerIds(int(words[0]), driver.brokers[int(words[0])].epoch)
    ),
    "die-before-commit": lambda driver, words: driver.die_at(commits=int(words[0]), after=False),
    "die-after-commit": lambda driver, words: driver.die_at(commits=int(words[0]), after=True),
    "lose-answer": lambda driver, words: driver.lose_answer(int(words[0])),
    "take-over": lambda driver, _: driver.take_over(),
}
"""Commands of scripts. `write-isr` writes just before the next commit; failures of the controller and lost results occur after the
given number of commits."""
