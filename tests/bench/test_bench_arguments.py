"""Command lines of bench and soak."""

import pytest

from bench import __main__ as bench_main
from bench import soak


def test_all_benchmarks_run_when_none_is_named() -> None:
    """`make bench` measures everything."""
    options = bench_main.parse([])

    assert options.names == []
    assert set(bench_main.BENCHMARKS) == {
        "placement",
        "election",
        "codec",
        "failover",
        "takeover",
        "takeover_at_scale",
        "shutdown",
        "shutdown_at_scale",
        "metadata-herd",
        "alter-partition-flood",
        "topics",
        "plan-start",
        "what-if",
        "spark-submissions",
        "sampling",
        "measured-plan",
        "analytics",
        "night",
        "stall",
        "log-open",
        "metadata-records",
        "quorum-election",
        "quorum-appends",
        "quorum-of-five",
        "quorum-observers",
        "quorum-snapshot",
        "quorum-frozen",
        "quorum-simulator",
        "kraft-broker-failure",
        "kraft-failover",
        "kraft-restarts",
        "kraft-topics",
        "kraft-heartbeats",
        "receive",
        "light-broker",
        "light-broker-growth",
        "light-broker-stall",
        "light-broker-start",
        "light-replication",
    }


def test_an_unknown_benchmark_is_refused_with_the_known_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists the known names."""
    with pytest.raises(SystemExit):
        bench_main.parse(["placment"])

    output = capsys.readouterr().err
    assert "no benchmark is called placment" in output
    assert "placement" in output


def test_every_benchmark_has_a_description(capsys: pytest.CaptureFixture[str]) -> None:
    """--list measures nothing."""
    assert bench_main.main(["--list"]) == 0

    output = capsys.readouterr().out
    assert all(name in output for name in bench_main.BENCHMARKS)


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--rounds", "many"]])
def test_rounds_are_a_number_from_one(arguments: list[str]) -> None:
    """Without a run there is no median."""
    with pytest.raises(SystemExit):
        bench_main.parse(arguments)


def test_a_soak_draws_a_seed_unless_one_is_given() -> None:
    """The seed repeats a failure."""
    assert soak.parse(["--seed", "7"]).seed == 7
    assert soak.parse([]).seed >= 0
