"""`steward controller`: signals, and what the exit code says."""

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
    """A process that ends as its test says."""

    error: Exception | None = None
    signals: tuple[int, ...] = ()

    def __init__(self, settings: ControllerSettings) -> None:
        assert settings is SETTINGS
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop."""
        self._stopping.set()

    async def run(self) -> None:
        """Fail, or wait for the signal that is sent to this very process."""
        if self.error is not None:
            raise self.error
        for number in self.signals:
            os.kill(os.getpid(), number)
        await self._stopping.wait()


@pytest.fixture(autouse=True)
def _fake_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_command, "ControllerProcess", FakeProcess)


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=str)
def test_a_signal_ends_it_gracefully(monkeypatch: pytest.MonkeyPatch, signals: tuple[int, ...]) -> None:
    """SIGTERM is how a pod ends, SIGINT how a person ends it; a second one changes nothing."""
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
def test_what_keeps_it_from_running_is_told_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: int,
) -> None:
    """2 for settings that cannot be, as for wrong options; 1 for what may be otherwise the next time."""
    monkeypatch.setattr(FakeProcess, "error", error)

    assert code == run_controller(SETTINGS)
    assert capsys.readouterr().err == f"steward controller: {error}\n"
    assert [record.why for record in caplog.records if record.levelno == logging.ERROR] == [str(error)]


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback belongs into the supervisor's log."""
    monkeypatch.setattr(FakeProcess, "error", ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        run_controller(SETTINGS)
