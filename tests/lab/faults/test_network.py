"""Network that isolates processes, between this process and an echo server of its own process."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.faults.network import Network
from lab.processes.ports import free_port
from lab.processes.process import Process
from lab.processes.waiting import port_accepts

ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(100):
            self.request.sendall(data)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""
QUIET_S = 0.2


@pytest.fixture
def network(tmp_path: Path) -> Iterator[tuple[Network, int]]:
    """A network with an echo server and this process; the port of the server in the network."""
    target = free_port()
    server = Process("echo", [sys.executable, "-c", ECHO, str(target)], tmp_path)
    network = Network()
    port = network.reserve()
    network.add("server", port, target, lambda: server.pid)
    network.add("client", network.reserve(), free_port(), os.getpid)
    server.launch()
    server.wait_until_ready(lambda: port_accepts(target))
    yield network, port
    network.close()
    server.kill()


def received_after_healing(cut: Network, client: socket.socket) -> bytes:
    """Check that nothing arrives, heal the network, and return what arrives then."""
    client.settimeout(QUIET_S)
    with pytest.raises(TimeoutError):
        client.recv(10)
    cut.heal()
    client.settimeout(10)
    return client.recv(10)


@pytest.mark.parametrize("isolated", ["server", "client"])
def test_bytes_wait_while_a_side_is_isolated_and_arrive_afterwards(network: tuple[Network, int], isolated: str) -> None:
    """As behind a switch that drops packets: TCP sends them again. The client is found by its socket."""
    cut, port = network
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"before")
        assert client.recv(10) == b"before"
        cut.isolate(isolated)
        client.sendall(b"within")

        assert received_after_healing(cut, client) == b"within"


@pytest.mark.parametrize("isolated", ["server", "client"])
def test_a_connection_that_begins_while_a_side_is_isolated_waits(network: tuple[Network, int], isolated: str) -> None:
    """It is accepted by the network, and reaches the server afterwards."""
    cut, port = network
    cut.isolate(isolated)
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"first")

        assert received_after_healing(cut, client) == b"first"


def test_the_end_of_a_connection_reaches_the_other_side(network: tuple[Network, int]) -> None:
    """A server that closes a connection ends that of the client too."""
    cut, port = network
    del cut
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.shutdown(socket.SHUT_WR)

        assert client.recv(10) == b""
