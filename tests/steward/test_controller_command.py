"""`steward controller`: signals and exit codes."""

import asyncio
import logging
import os
import signal

import pytest

from controller_core.shell.settings import ControllerSettings, Listener
from controller_core.shell.startup_checks import IdentityError, PolicyError
from kafka_zookeeper.errors import ConnectFailedError, SessionLostError
from steward import controller_command
from steward.controller_command import run_controller

SETTINGS = ControllerSettings("zk:2181", 1000, (Listener("A", "127.0.0.1", 0, "127.0.0.1", 0),), "A")


class FakeProcess:
    """A process that fails with `error`, or receives `signals`."""

    error: Exception | None = None
    signals: tuple[int, ...] = ()

    def __init__(self, settings: ControllerSettings) -> None:
        assert settings is SETTINGS
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop."""
        self._stopping.set()

    async def run(self) -> None:
        """Fail, or send the signals to this process and wait for `stop`."""
        if self.error is not None:
            raise self.error
        for number in self.signals:
            os.kill(os.getpid(), number)
        await self._stopping.wait()


@pytest.fixture(autouse=True)
def _fake_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_command, "ControllerProcess", FakeProcess)


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=str)
def test_signal_stops_the_process_gracefully(monkeypatch: pytest.MonkeyPatch, signals: tuple[int, ...]) -> None:
    """Kubernetes sends SIGTERM, a terminal sends SIGINT; a second signal changes nothing."""
    monkeypatch.setattr(FakeProcess, "signals", signals)

    assert run_controller(SETTINGS) == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (IdentityError("the controller's id 1000 is a broker's"), 2),
        (PolicyError("broker 1 sets create.topic.policy.class.name=com.example.Policy"), 2),
        (ConnectFailedError("no session with ZooKeeper at zk:2181"), 1),
        (SessionLostError("the session is over"), 1),
        (OSError(98, "error while attempting to bind on address ('127.0.0.1', 9092): address already in use"), 1),
    ],
)
def test_startup_error_is_logged_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: int,
) -> None:
    """2 for wrong settings, as for wrong options; 1 for errors that may not occur the next time."""
    monkeypatch.setattr(FakeProcess, "error", error)

    assert run_controller(SETTINGS) == code
    assert capsys.readouterr().err == f"steward controller: {error}\n"
    assert [vars(record)["error"] for record in caplog.records if record.levelno == logging.ERROR] == [str(error)]


def test_unexpected_exception_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback belongs in the log of the supervisor."""
    monkeypatch.setattr(FakeProcess, "error", ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        run_controller(SETTINGS)
