"""Medians, ratios and alternate runs."""

from bench.harness import Better, Effort, Row, Side, alternate, duration, promised, side_of, throughput


def test_a_side_has_a_median_a_minimum_and_a_maximum() -> None:
    """One slow run does not move the figure."""
    assert side_of([50.0, 1.0, 2.0]) == Side(2.0, 1.0, 50.0)


def test_a_ratio_over_one_means_that_steward_is_better() -> None:
    """Whether higher or lower figures are better."""
    faster = throughput("a.b", "", "", "things/s", 100, ([1.0], [4.0]))
    sooner = duration("a.c", "", "", ([0.1], [0.4]))

    assert (faster.ratio, faster.better) == (4.0, Better.HIGHER)
    assert (sooner.ratio, sooner.better) == (4.0, Better.LOWER)


def test_a_promise_is_kept_by_the_promised_ratio_or_a_greater_one() -> None:
    """Without a promise, every ratio is enough."""
    row = throughput("a.b", "", "", "things/s", 100, ([1.0], [4.0]))

    assert [promised(row, "P1", least).kept for least in (None, 4.0, 4.1)] == [True, True, False]


def test_figures_are_in_the_rows_unit() -> None:
    """Seconds become things per second, or milliseconds."""
    faster = throughput("a.b", "", "", "things/s", 100, ([0.5, 1.0, 2.0], [1.0, 1.0, 1.0]))
    sooner = duration("a.c", "", "", ([0.25], [0.5]))

    assert faster.ours == Side(100.0, 50.0, 200.0)
    assert sooner.ours == Side(250.0, 250.0, 250.0)


def test_the_spread_is_a_part_of_the_median() -> None:
    """From the lowest to the highest."""
    assert Side(100.0, 50.0, 200.0).spread == 1.5


def test_steward_and_the_peer_alternate() -> None:
    """A machine that is busy for a while slows both."""
    order: list[str] = []

    def run(side: str, seconds: float) -> float:
        order.append(side)
        return seconds

    seconds = alternate(lambda: run("ours", 1.0), lambda: run("peer", 2.0), 2)

    assert order == ["ours", "peer", "ours", "peer"]
    assert seconds == ([1.0, 1.0], [2.0, 2.0])


def test_a_quick_run_is_short_and_given_rounds_win() -> None:
    """--quick and --rounds."""
    assert Effort().runs() == 7
    assert Effort(quick=True).runs() == 3
    assert Effort(quick=True, rounds=2).runs() == 2


def test_a_peer_time_of_zero_is_no_division_by_zero() -> None:
    """A clock of milliseconds may measure zero."""
    nothing = Side(0.0, 0.0, 0.0)

    assert float("inf") == Row("a.b", "", "", "ms", Better.LOWER, nothing, nothing, 1).ratio
