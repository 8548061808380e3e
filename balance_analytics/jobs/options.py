"""The command line of the job: its options and their limits."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Callable, Sequence

from balance_analytics.moves.planner_request import RESOURCES, TOLERANCE
from kafka_operator.resources.quantity import read_bytes
from reconciler.resources.object_names import is_namespace_name, is_object_name

STAGES = ("facts", "loads", "study", "moves", "report")
MAX_WINDOW_DAYS = 90
"""A peak hour is kept in twelve bits, 170 days of hours; older days say little about the current load."""

MAX_MINUTES = 60
MAX_PERCENT = 100
MAX_BROKER_ID = 2**31 - 1
TERMINATION_LOG = "/dev/termination-log"
"""Where Kubernetes reads the termination message of a container: the default of terminationMessagePath."""


def parser(description: str = "") -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="balance_analytics.jobs.main", description=description)
    _study(made)
    _goal(made)
    _proposal(made)
    return made


def options_of(arguments: Sequence[str] | None, description: str = "") -> argparse.Namespace:
    """Parse the command line; an invalid one ends the process with status 2, by argparse."""
    command = parser(description)
    options = command.parse_args(arguments)
    if options.round_seconds < 1 or options.min_hours < 1:
        command.error("--round-seconds and --min-hours must be 1 or more")
    if options.propose and "moves" not in options.stage:
        command.error("--propose needs the stage moves")
    if options.propose and not (options.cluster and options.namespace):
        command.error("--propose needs --cluster and --namespace: the name and place of the Cluster resource")
    if options.approve and not options.propose:
        command.error("--approve needs --propose")
    return options


def _study(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--samples", metavar="PLACE", help="kafka://HOST:PORT[,HOST:PORT][/TOPIC], or a folder of Parquet"
    )
    made.add_argument("--kafka-properties", metavar="FILE", help="settings of a Kafka client, a line each, for access")
    made.add_argument("--facts", required=True, metavar="PATH", help="folder of the hourly facts")
    made.add_argument("--out", required=True, metavar="PATH", help="folder for loads, the result, moves and the report")
    made.add_argument(
        "--window-days", type=_number(1, MAX_WINDOW_DAYS), default=14, metavar="N", help="days to study (14)"
    )
    made.add_argument(
        "--min-hours", type=int, default=24, metavar="N", help="the study fails with fewer hours of facts (24)"
    )
    made.add_argument(
        "--min-minutes",
        type=_number(1, MAX_MINUTES),
        default=5,
        metavar="N",
        help="minutes with samples that an hour needs to count (5)",
    )
    made.add_argument(
        "--recompute",
        type=_days,
        metavar="FROM[,TO]",
        help="compute the facts of these days again, such as 2026-01-31; by default only those whose samples have changed",
    )
    made.add_argument(
        "--round-seconds", type=int, default=60, metavar="S", help="interval of the samples, in seconds (60)"
    )
    made.add_argument("--cluster-id", metavar="ID", help="the cluster to study, if the facts have several")
    made.add_argument("--brokers", metavar="FILE", help='JSON: {"1": {"rack": "a", "disk_bytes": 1000000000000}, …}')
    made.add_argument("--rates", metavar="PLACE", help="Prometheus' rates of topics: a file, or a folder of files")
    made.add_argument(
        "--key-sketches", metavar="FILE", help='JSON: {"TOPIC": {"messages": 9, "error": 0, "counts": {…}}}'
    )
    made.add_argument(
        "--stage", type=_stages, default=STAGES, metavar="NAME[,NAME]", help=f"some of {', '.join(STAGES)}"
    )


def _goal(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--resources",
        type=_resources,
        default=RESOURCES,
        metavar="NAME[,NAME]",
        help=f"what moves balance, some of {', '.join(RESOURCES)}; all by default",
    )
    made.add_argument(
        "--tolerance-percent",
        type=_number(1, MAX_PERCENT),
        default=round(TOLERANCE * 100),
        metavar="N",
        help="allowed difference of a broker from the mean (5)",
    )
    made.add_argument(
        "--max-bytes",
        type=_bytes,
        metavar="BYTES",
        help="limit of the bytes that moves copy, such as 500Gi; no limit by default",
    )
    made.add_argument(
        "--exclude-topics", type=_names, default=(), metavar="TOPIC[,TOPIC]", help="topics that are not moved"
    )
    made.add_argument(
        "--exclude-brokers", type=_ids, default=(), metavar="ID[,ID]", help="brokers from and to which nothing is moved"
    )


def _proposal(made: argparse.ArgumentParser) -> None:
    made.add_argument("--cluster", type=_name, metavar="NAME", help="name of the Cluster resource for the Reassignment")
    made.add_argument("--namespace", type=_namespace, metavar="NAME", help="its namespace")
    made.add_argument("--propose", action="store_true", help="create the Reassignment, which waits for approval")
    made.add_argument("--approve", action="store_true", help="create it with approval, so that it runs at once")
    made.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig for --propose outside of a pod")
    made.add_argument(
        "--termination-log",
        default=TERMINATION_LOG,
        metavar="FILE",
        help=f"file that gets the summary, if it exists ({TERMINATION_LOG})",
    )


def _days(text: str) -> tuple[str, str | None]:
    """Return the first and the last day; without a last one to the newest.

    >>> _days("2026-01-31"), _days("2026-01-31,2026-02-01")
    (('2026-01-31', None), ('2026-01-31', '2026-02-01'))
    """
    first, comma, last = text.partition(",")
    try:
        days = [dt.date.fromisoformat(day).isoformat() for day in ([first, last] if comma else [first])]
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one day or two days, such as 2026-01-31,2026-02-01"
        ) from error
    if days[-1] < days[0]:
        raise argparse.ArgumentTypeError(f"{text!r} has a last day before the first")
    return days[0], (days[1] if comma else None)


def _stages(text: str) -> tuple[str, ...]:
    """Return the stages named, in their own order.

    >>> _stages("study,loads")
    ('loads', 'study')
    """
    return _some_of(text, STAGES, "stage")


def _resources(text: str) -> tuple[str, ...]:
    return _some_of(text, RESOURCES, "resource")


def _some_of(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    names = text.split(",")
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return int(text)

    return read


def _bytes(text: str) -> int:
    try:
        return read_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a list, once each.

    >>> _names("b, a,,b")
    ('a', 'b')
    """
    return tuple(sorted({name.strip() for name in text.split(",")} - {""}))


def _ids(text: str) -> tuple[int, ...]:
    names = _names(text)
    if not all(name.isdecimal() and int(name) <= MAX_BROKER_ID for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of broker ids")
    return tuple(sorted(map(int, names)))


def _name(text: str) -> str:
    if not is_object_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid name of a Kubernetes object")
    return text


def _namespace(text: str) -> str:
    if not is_namespace_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid name of a Kubernetes namespace")
    return text
