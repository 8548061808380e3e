"""The report of a load: conclusions from the acknowledged records and those that were read back."""

import pytest

from lab.checks.traffic_report import Ledger, ReadRecord


def ledger_with(*acknowledged: tuple[int, int, float]) -> Ledger:
    """A report with (sequence, partition, seconds) acknowledged."""
    ledger = Ledger(run="r")
    for sequence, partition, now_s in acknowledged:
        ledger.sent()
        ledger.acknowledged(ledger.value(sequence), partition, now_s)
    return ledger


def read(*records: tuple[int, bytes | None]) -> list[ReadRecord]:
    """Records as (partition, value), each with an offset of its own."""
    return [ReadRecord(partition, offset, value) for offset, (partition, value) in enumerate(records)]


def test_an_acknowledged_record_that_is_not_read_back_is_lost() -> None:
    """Invariant: nothing acknowledged is lost."""
    report = ledger_with((0, 0, 0.0), (1, 1, 0.1), (2, 0, 0.2)).report(read((0, b"r-0"), (1, b"r-1")))

    assert (report.acked, report.read_back, report.lost) == (3, 2, (2,))
    assert not report.ok


def test_records_that_were_not_acknowledged_may_be_read_or_not() -> None:
    """A producer without an answer does not know, so both are right."""
    report = ledger_with((0, 0, 0.0)).report(read((0, b"r-0"), (0, b"r-1")))

    assert (report.acked, report.read_back, report.lost) == (1, 1, ())
    assert report.ok


def test_a_record_read_twice_is_a_duplicate_and_not_out_of_order() -> None:
    """What a producer without idempotence may leave after a retry."""
    report = ledger_with((0, 0, 0.0), (1, 0, 0.1)).report(read((0, b"r-0"), (0, b"r-1"), (0, b"r-0")))

    assert (report.duplicates, report.out_of_order) == (1, 0)
    assert report.twice == ("record 0 at 0@0, 0@2",)


def test_a_record_that_is_read_twice_at_one_offset_counts_once() -> None:
    """A reader whose leader failed may read from its position again: no record was written twice."""
    again = [ReadRecord(0, 7, b"r-0"), ReadRecord(0, 8, b"r-1"), ReadRecord(0, 7, b"r-0")]
    report = ledger_with((0, 0, 0.0), (1, 0, 0.1)).report(again)

    assert (report.read_back, report.duplicates, report.out_of_order) == (2, 0, 0)


def test_order_is_checked_within_a_partition_only() -> None:
    """Kafka orders the records of a partition."""
    ledger = ledger_with((0, 0, 0.0), (1, 1, 0.1), (2, 0, 0.2), (4, 0, 0.3))

    assert ledger.report(read((1, b"r-1"), (0, b"r-0"), (0, b"r-2"))).out_of_order == 0
    assert ledger.report(read((0, b"r-2"), (0, b"r-0"), (1, b"r-1"), (0, b"r-4"))).out_of_order == 1


def test_the_longest_gap_is_found_overall_and_in_each_partition() -> None:
    """Acknowledgements of other partitions hide one partition's failover, so both are reported."""
    report = ledger_with((0, 0, 10.0), (1, 1, 10.5), (2, 0, 12.0), (3, 1, 13.0)).report(read())

    assert pytest.approx(1500) == report.longest_gap_ms
    assert report.longest_partition_gap_ms == {0: pytest.approx(2000), 1: pytest.approx(2500)}


def test_records_of_others_on_the_same_topic_do_not_count() -> None:
    """Two loads may share a topic; other programs write other records."""
    report = ledger_with((0, 0, 0.0)).report(read((0, b"r-0"), (0, b"other-0"), (0, None), (0, b"\xff"), (0, b"r")))

    assert (report.read_back, report.duplicates) == (1, 0)


def test_an_error_that_a_client_saw_is_not_ok() -> None:
    """Clients never see an error that outlasts their retries."""
    ledger = ledger_with((0, 0, 0.0))
    ledger.errors.append("partition 0: _MSG_TIMED_OUT: Local: Message timed out")

    assert not ledger.report(read((0, b"r-0"))).ok


def test_the_summary_is_one_line() -> None:
    """Printed by the demo."""
    report = ledger_with((0, 0, 0.0), (1, 0, 0.25)).report(read((0, b"r-0"), (0, b"r-1")))

    assert (
        report.summary()
        == "2 sent, 2 acked, 2 read back, 0 lost, 0 duplicates, 0 client errors, longest gap 250 ms (one partition: 250 ms)"
    )
