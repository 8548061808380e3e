"""Printing of a what-if for people, at 80 columns: a summary, then the brokers, racks and assumptions."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from controller_core.views.state_schema import Listing
from controller_core.views.what_if import WhatIfDocument
from controller_core.views.what_if.schema import BrokerEffects, RackEffects, RepairEffects
from kafka_operator.resources.reassignment_records import written_bytes

MAX_NAMED = 5
"""Partitions named in a line; the JSON form has more."""

MAX_BROKERS = 30
"""Brokers in the table: those that leave or are over capacity first, then those with the largest changes. The JSON form has all."""

UNKNOWN = "unknown"
MINUTES_PER_HOUR = 60


def show_what_if(document: WhatIfDocument, console: Console) -> None:
    """Print the document."""
    counts = document["cluster"]
    moving = f", {counts['reassigning']} being reassigned" if counts["reassigning"] else ""
    console.print(f"What if: {document['scenario']['description']}")
    console.print(
        f"{counts['brokers']} live brokers, {counts['topics']} topics, {counts['partitions']} partitions{moving}"
    )
    console.print(_summary(document))
    console.print(_brokers(document["brokers"]))
    if document["spread"] is not None:
        console.print(_racks(document["spread"]["racks"]))
    console.print(f"Assumption: {document['repair']['assumption']}.")
    for note in document["notes"]:
        console.print(f"Note: {note}.")


def _summary(document: WhatIfDocument) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(document):
        table.add_row(name, value)
    return table


def _lines(document: WhatIfDocument) -> Iterable[tuple[str, str]]:
    offline, under, spread = document["offline"], document["under_min_isr"], document["spread"]
    yield "leaders that move", str(document["leaders_moved"])
    yield "offline", _named(offline["new"])
    if document["no_replica_left"]["in_all"]:
        yield "  no live replica", _named(document["no_replica_left"])
    if document["needs_unclean"]["in_all"]:
        yield "  replica out of sync", _named(document["needs_unclean"])
    yield "offline already", _named(offline["before"])
    yield "under min ISR", _named(under["new"])
    yield "under min ISR already", _named(under["before"])
    if spread is None:
        yield "in fewer racks", UNKNOWN
    else:
        yield "in fewer racks", _named(spread["fewer_racks"])
        yield "  after the repair", _named(spread["fewer_racks_after_repair"])
    yield from _repair_lines(document["repair"])
    over = document["over_capacity"]
    yield "disks over capacity", UNKNOWN if over is None else f"brokers {', '.join(map(str, over))}" if over else "none"


def _repair_lines(repair: RepairEffects) -> Iterable[tuple[str, str]]:
    amount = UNKNOWN if repair["bytes"] is None else written_bytes(repair["bytes"])
    yield "to copy", f"{amount}, {repair['replicas']} replica{'' if repair['replicas'] == 1 else 's'}"
    rate = f"at {written_bytes(repair['rate_bytes_per_second'])}/s for each broker"
    yield "time to copy", UNKNOWN if repair["hours"] is None else f"{_duration(repair['hours'])} {rate}"
    if repair["left"]["in_all"]:
        yield "not copied", _named(repair["left"])


def _named(listing: Listing[str]) -> str:
    """Return the number of partitions and the first names.

    >>> _named({"in_all": 7, "listed": ["a-0", "a-1", "a-2", "a-3", "a-4", "a-5"]})
    '7: a-0, a-1, a-2, a-3, a-4 and 2 more'
    """
    if not listing["in_all"]:
        return "none"
    names = listing["listed"][:MAX_NAMED]
    more = listing["in_all"] - len(names)
    return f"{listing['in_all']}: {', '.join(names)}" + (f" and {more} more" if more else "")


def _duration(hours: float) -> str:
    """Return hours in words, minutes below two hours.

    >>> _duration(0.0), _duration(1.5), _duration(18.04)
    ('0 minutes', '90 minutes', '18.0 hours')
    """
    if hours < 2:
        return f"{-(-hours * MINUTES_PER_HOUR // 1):.0f} minutes" if hours else "0 minutes"
    return f"{hours:.1f} hours"


def _brokers(brokers: Sequence[BrokerEffects]) -> Table:
    shown = sorted(sorted(brokers, key=_interest)[:MAX_BROKERS], key=lambda broker: broker["id"])
    title = (
        "Brokers" if len(shown) == len(brokers) else f"Brokers, {len(shown)} of {len(brokers)} with the most changes"
    )
    table = Table(title=title, title_justify="left")
    for name in ("id", "rack", "state"):
        table.add_column(name)
    for name in ("leaders", "replicas", "bytes after", "free disk after"):
        table.add_column(name, justify="right")
    for broker in shown:
        table.add_row(
            str(broker["id"]),
            broker["rack"] or "",
            broker["state"],
            _change(broker["leaders_before"], broker["leaders_after"]),
            _change(broker["replicas_before"], broker["replicas_after"]),
            UNKNOWN if broker["bytes_after"] is None else written_bytes(broker["bytes_after"]),
            "" if broker["state"] == "lost" else _free(broker["free_bytes_after"]),
        )
    return table


def _interest(broker: BrokerEffects) -> tuple[bool, bool, int]:
    change = abs(broker["leaders_after"] - broker["leaders_before"]) + abs(
        broker["replicas_after"] - broker["replicas_before"]
    )
    return broker["state"] == "stays", not broker["over_capacity"], -change


def _change(before: int, after: int) -> str:
    return str(before) if before == after else f"{before} > {after}"


def _free(after: int | None) -> str:
    """Return the free bytes of a disk, or how many it lacks.

    >>> _free(2048), _free(-2048), _free(None)
    ('2.0KiB', 'lacks 2.0KiB', 'unknown')
    """
    if after is None:
        return UNKNOWN
    return written_bytes(after) if after >= 0 else f"lacks {written_bytes(-after)}"


def _racks(racks: Sequence[RackEffects]) -> Table:
    table = Table(title="Racks", title_justify="left")
    table.add_column("rack")
    for name in ("brokers", "leaders"):
        table.add_column(name, justify="right")
    for rack in racks:
        table.add_row(
            rack["rack"],
            _change(rack["brokers_before"], rack["brokers_after"]),
            _change(rack["leaders_before"], rack["leaders_after"]),
        )
    return table
