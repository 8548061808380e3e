"""Reserved ports of the lab."""

import socket
import subprocess
import sys
from types import SimpleNamespace

from lab.processes.ports import HIGHEST_PORT, LOWEST_PORT, free_port, release_port


def test_ports_are_different_and_below_the_kernels_ephemeral_range() -> None:
    """The kernel could use such a port for an outgoing connection before its process binds it."""
    ports = [free_port() for _ in range(50)]

    assert len(set(ports)) == 50
    assert all(LOWEST_PORT <= port <= HIGHEST_PORT for port in ports)
    for port in ports:
        release_port(port)


def test_a_reserved_port_is_not_handed_out_to_another_process() -> None:
    """Parallel runs share the machine: here the other process can choose no other port."""
    port = free_port()
    program = f"""
import lab.processes.ports
lab.processes.ports.LOWEST_PORT = lab.processes.ports.HIGHEST_PORT = {port}
try:
    print(lab.processes.ports.free_port())
except lab.processes.ports.LabError as error:
    print("refused")
"""

    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "refused\n"
    release_port(port)
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == f"{port}\n"


def test_a_port_in_use_is_not_handed_out(monkeypatch) -> None:
    """Other programs do not know these reservations."""
    used, free = free_port(), free_port()  # of the whole range: runs at the same time may hold any single neighbour
    release_port(used)
    with socket.create_server(("127.0.0.1", used)):
        drawn = iter([used, free])
        monkeypatch.setattr(
            "lab.processes.ports.random.SystemRandom", lambda: SimpleNamespace(randint=lambda *_: next(drawn))
        )
        release_port(free)

        assert free_port() == free
    release_port(free)
