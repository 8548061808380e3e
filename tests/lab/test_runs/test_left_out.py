"""The list of tests that a run left out, which is a failure with CI=true."""

from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.kafka
def test_with_brokers():
    pass

@pytest.mark.kubernetes
def test_with_an_api_server():
    pass

def test_of_a_pure_part():
    pass
"""


@pytest.fixture
def bare_machine(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.Pytester:
    """A run on a machine without Java, Maven, Go, a cache or a packed copy of Kubernetes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("JAVA_HOME", "KUBEBUILDER_ASSETS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("lab.downloads.kube_binaries.PACKED_FOLDER", tmp_path / "none")
    pytester.makeini("[pytest]\nmarkers =\n    kafka\n    kubernetes\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest('pytest_plugins = ["lab.test_runs.pytest_plugin"]')
    pytester.makepyfile(TESTS)
    return pytester


def test_without_the_tools_the_rest_runs_and_the_report_names_the_installing_command(
    bare_machine: pytest.Pytester,
) -> None:
    """`make test` runs what it can and ends with the list of what it left out and the command that installs it."""
    result = bare_machine.runpytest_inprocess()

    result.stdout.fnmatch_lines(
        [
            "*left out (not a failure; with CI=true it would be)*",
            "1 tests: java (runs ZooKeeper and Kafka) is missing",
            "*to run them: apt-get install --yes default-jdk-headless",
            "1 tests: go (builds the Kubernetes API server and etcd) is missing",
            "*to run them: apt-get install --yes golang-go",
            "*1 passed, 2 deselected*",
        ]
    )
    assert result.ret == pytest.ExitCode.OK


def test_with_ci_anything_left_out_is_a_failure(bare_machine: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With CI=true, anything left out is a failure."""
    monkeypatch.setenv("CI", "true")
    result = bare_machine.runpytest_inprocess()

    result.stdout.fnmatch_lines(["*left out (a failure, as CI=true)*", "*1 passed, 2 deselected*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_unselected_tests_are_not_left_out(bare_machine: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of only pure tests needs no tool, and prepares none."""
    monkeypatch.setenv("CI", "true")
    result = bare_machine.runpytest_inprocess("-k", "pure")

    assert "left out" not in result.stdout.str()
    assert result.ret == pytest.ExitCode.OK


def test_a_test_that_skips_itself_is_listed_too(bare_machine: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """No silent skip: it fails the run with CI=true."""
    monkeypatch.setenv("CI", "true")
    bare_machine.makepyfile("import pytest\n\ndef test_skips():\n    pytest.skip('no network today')\n")
    result = bare_machine.runpytest_inprocess("-k", "skips")

    result.stdout.fnmatch_lines(
        ["*left out (a failure, as CI=true)*", "*::test_skips: Skipped: no network today", "*1 skipped*"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failed_test_shows_the_logs_of_the_labs_processes(bare_machine: pytest.Pytester) -> None:
    """The folder with the logs is deleted before the failure is read."""
    bare_machine.makepyfile("""
import sys
from lab.processes.process import Process

def test_fails(tmp_path):
    process = Process("speaker", [sys.executable, "-c", "print('what went wrong')"], tmp_path)
    process.launch()
    process.wait()
    assert False
""")
    result = bare_machine.runpytest_inprocess("-k", "fails")

    result.stdout.fnmatch_lines(["*log of speaker*", "what went wrong"])
