"""A whole study: from columns of loads to the values of a result.

Each figure is computed by the module of its name. This module combines them, rounds them to `DIGITS` significant digits, so that two
runs over the same facts write the same bytes, and cuts lists to the limits of `model/results.py`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from balance_analytics.model import results
from balance_analytics.model.rate_rows import SOURCE
from balance_analytics.study import hot_partitions, key_skew, leadership, series, skew
from balance_analytics.study.arrays import BoolArray, FloatArray
from balance_analytics.study.columns import BrokerColumns, PartitionColumns, Question
from balance_analytics.study.disks import forecasts
from balance_analytics.study.heat_map import heat_map
from balance_analytics.study.numbers import rounded, text_of

COUNTED_PART = 0.5
"""Part of the hours in which a broker must lead partitions to count for skew: otherwise it was down."""

HEAVY_PART = 0.01
"""Part of the messages from which a key is listed."""


def study(question: Question, left_out: tuple[results.LeftOut, ...]) -> results.Result:
    """Return the result; its `left_out` has that of earlier stages first."""
    brokers, partitions = question.brokers, question.partitions
    seen = brokers.led.sum(axis=0) > 0
    counted = (brokers.led > 0).sum(axis=1) >= COUNTED_PART * seen.sum()
    disks, more = forecasts(brokers, question.facts.capacities)
    heat = hot_partitions.heat(np.nan_to_num(partitions.bytes_in_mean), partitions.topic, int(counted.sum()))
    of_leaders = leadership.imbalance(partitions.leader, partitions.replicas[:, 0])
    return results.Result(
        schema=results.RESULT_SCHEMA,
        cluster_id=question.cluster_id,
        window=_window(brokers, seen),
        partitions=len(partitions.partition),
        topics=len(partitions.topics),
        skew=_skew(question, seen, counted),
        skew_over_time=_over_time(brokers, seen, counted),
        brokers=_brokers(question, seen, counted),
        leader_imbalance=results.LeaderImbalance(
            of_leaders.partitions,
            of_leaders.not_preferred,
            rounded(of_leaders.ratio),
            of_leaders.worst_broker,
            rounded(of_leaders.worst_ratio),
            of_leaders.without_leader,
        ),
        hot_partitions_found=int(heat.hot.sum()),
        hot_partitions=_hot(partitions, heat),
        hot_rule=hot_partitions.RULE,
        forecasts=disks,
        topic_skew=_topics(partitions),
        key_skew=_keys(question),
        heat_map=heat_map(brokers),
        left_out=(*left_out, *_missing(brokers, seen, counted), *more),
    )


def _window(brokers: BrokerColumns, seen: BoolArray) -> results.Window:
    start, last = int(brokers.hours[0]), int(brokers.hours[-1])
    return results.Window(text_of(start), text_of(last + 3600), len(brokers.hours), int(seen.sum()))


def _missing(brokers: BrokerColumns, seen: BoolArray, counted: BoolArray) -> list[results.LeftOut]:
    found = []
    for row in np.flatnonzero(~counted):
        away = int(seen.sum() - (brokers.led[row] > 0).sum())
        what = f"broker {brokers.brokers[row]} led nothing in {away} of {int(seen.sum())} hours; skew is measured without it"
        found.append(results.LeftOut(what, 1, "check whether it is down; elect preferred leaders when it is back"))
    return found


def _resources(question: Question, seen: BoolArray) -> list[tuple[str, FloatArray, str]]:
    """Return each resource, its mean for every broker over the hours seen, and where it comes from."""
    brokers = question.brokers
    known = (brokers.copies > 0).any(axis=0)
    last = int(np.flatnonzero(known)[-1]) if known.any() else -1
    disk = np.where(brokers.copies[:, last] > 0, brokers.disk_bytes[:, last], 0.0)
    out = source_of(question.rated_out, "estimate") if question.bytes_out_known else "none"
    return [
        ("bytes_in", brokers.bytes_in[:, seen].mean(axis=1), source_of(question.rated_in, "offsets")),
        ("bytes_out", brokers.bytes_out[:, seen].mean(axis=1), out),
        ("messages_in", brokers.messages_in[:, seen].mean(axis=1), "offsets"),
        ("disk", disk, "log size"),
        ("leaders", _leaders(question), "metadata"),
    ]


def source_of(rated: float, otherwise: str) -> str:
    """Return the source of a resource; `rated` is the part of its hours with rates of Prometheus.

    >>> source_of(0.0, "estimate"), source_of(1.0, "estimate"), source_of(0.25, "estimate")
    ('estimate', 'prometheus', 'prometheus in 25.0 % of hours, else estimate')
    """
    if rated in {0.0, 1.0}:
        return SOURCE if rated else otherwise
    return f"{SOURCE} in {100 * rated:.1f} % of hours, else {otherwise}"


def _leaders(question: Question) -> FloatArray:
    return np.array(
        [(question.partitions.leader == broker).sum() for broker in question.brokers.brokers], dtype=np.float64
    )


def _skew(question: Question, seen: BoolArray, counted: BoolArray) -> tuple[results.Skew, ...]:
    found = []
    for name, means, source in _resources(question, seen):
        figures = skew.unevenness(means[counted])
        found.append(
            results.Skew(
                name,
                rounded(figures.gini),
                rounded(figures.max_over_mean),
                rounded(figures.coefficient_of_variation),
                source,
            )
        )
    return tuple(found)


def _over_time(brokers: BrokerColumns, seen: BoolArray, counted: BoolArray) -> tuple[results.SkewAt, ...]:
    found = []
    for at in np.flatnonzero(seen):
        loads = brokers.bytes_in[counted, at]
        figures = rounded(skew.max_over_mean(loads)), rounded(skew.gini(loads))
        found.append(results.SkewAt(text_of(int(brokers.hours[at])), "bytes_in", *figures))
    return tuple(found)


def _brokers(question: Question, seen: BoolArray, counted: BoolArray) -> tuple[results.Broker, ...]:
    brokers, partitions = question.brokers, question.partitions
    preferred = partitions.replicas[:, 0]
    means = {name: values for name, values, _ in _resources(question, seen)}
    found = []
    for row, broker in enumerate(brokers.brokers.tolist()):
        rates = np.where(seen, brokers.bytes_in[row], np.nan)
        figures = series.summary(rates)
        assert figures is not None, "a study has at least one hour"
        led = int((brokers.led[row] > 0).sum())
        row_of_broker = results.Broker(
            broker=broker,
            rack=question.facts.racks.get(broker),
            leaders=int(means["leaders"][row]),
            preferred_leaders=int((preferred == broker).sum()),
            replicas=int((partitions.replicas == broker).sum()),
            bytes_in_mean=rounded(figures.mean),
            bytes_in_p95=rounded(figures.p95),
            bytes_out_mean=rounded(float(means["bytes_out"][row])) if question.bytes_out_known else None,
            messages_in_mean=rounded(float(means["messages_in"][row])),
            disk_bytes=int(means["disk"][row]),
            peak_hour=text_of(int(brokers.hours[figures.peak_at])) if led else None,
            trend=None if figures.trend is None else rounded(figures.trend),
            hours_led=led,
            counted=bool(counted[row]),
        )
        found.append(row_of_broker if brokers.copies[row].any() else replace(row_of_broker, disk_bytes=None))
    return tuple(found)


def _hot(partitions: PartitionColumns, heat: hot_partitions.Heat) -> tuple[results.HotPartition, ...]:
    hot = np.flatnonzero(heat.hot)
    order = hot[np.lexsort((partitions.partition[hot], partitions.topic[hot], -heat.of_broker[hot]))]
    return tuple(
        results.HotPartition(
            topic=partitions.topics[partitions.topic[row]],
            partition=int(partitions.partition[row]),
            leader=int(partitions.leader[row]),
            bytes_in_mean=rounded(float(partitions.bytes_in_mean[row])),
            bytes_in_p95=rounded(float(partitions.bytes_in_p95[row])),
            over_topic=rounded(float(min(heat.over_topic[row], 1e9))),
            of_broker=rounded(float(heat.of_broker[row])),
            reason=hot_partitions.UNEVEN_KEYS if heat.uneven_keys[row] else hot_partitions.TOO_LARGE,
        )
        for row in order[: results.MAX_HOT_PARTITIONS]
    )


def _topics(partitions: PartitionColumns) -> tuple[results.TopicSkew, ...]:
    """Return the topics whose heaviest partition is furthest above their mean, in bytes: where the skew of keys costs the most."""
    loads = np.nan_to_num(partitions.bytes_in_mean)
    count = np.bincount(partitions.topic, minlength=len(partitions.topics))
    total = np.bincount(partitions.topic, weights=loads, minlength=len(partitions.topics))
    highest = np.zeros(len(partitions.topics))
    np.maximum.at(highest, partitions.topic, loads)
    above = np.where(count > 1, highest - total / np.maximum(count, 1), 0.0)
    rows = np.argsort(partitions.topic, kind="stable")
    ends = np.cumsum(count)
    found = []
    for topic in np.argsort(-above, kind="stable")[: results.MAX_TOPICS]:
        if above[topic] <= 0:
            break
        of_topic = loads[rows[ends[topic] - count[topic] : ends[topic]]]
        figures = rounded(skew.gini(of_topic)), rounded(skew.max_over_mean(of_topic))
        name = partitions.topics[topic]
        found.append(results.TopicSkew(name, int(count[topic]), rounded(float(total[topic])), *figures))
    return tuple(found)


def _keys(question: Question) -> tuple[results.KeySkew, ...]:
    found = []
    for topic, sketch in sorted(question.sketches.items()):
        heavy = tuple(
            results.HeavyKey(heavy_key.key, rounded(heavy_key.at_least), rounded(heavy_key.at_most))
            for heavy_key in key_skew.heavy_keys(sketch, HEAVY_PART)
        )
        floor = rounded(key_skew.partition_floor(sketch))
        found.append(results.KeySkew(topic, sketch.messages, heavy, floor))
    return tuple(found)
