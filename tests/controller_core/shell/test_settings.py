"""Settings of a controller process, validated before anything is opened."""

import pytest

from controller_core.shell.settings import ControllerSettings, Listener, parse_listener

INTERNAL = Listener("INTERNAL", "10.0.0.1", 9090, "10.0.0.1", 9090)
CLIENT = Listener("CLIENT", "10.0.0.1", 9092, "10.0.0.1", 9092)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CLIENT=10.0.0.1:9092", CLIENT),
        ("client=10.0.0.1:9092", CLIENT),
        ("CLIENT=10.0.0.1:9092,kafka.example:443", Listener("CLIENT", "10.0.0.1", 9092, "kafka.example", 443)),
        ("CLIENT=0.0.0.0:9092,kafka.example:443", Listener("CLIENT", "0.0.0.0", 9092, "kafka.example", 443)),
        ("CLIENT=:9092,kafka.example:443", Listener("CLIENT", "", 9092, "kafka.example", 443)),
        ("CLIENT=[::]:9092,[2001:db8::1]:9092", Listener("CLIENT", "::", 9092, "2001:db8::1", 9092)),
        ("CLIENT=[::1]:9092", Listener("CLIENT", "::1", 9092, "::1", 9092)),
        ("A-b_c.1=localhost:0", Listener("A-B_C.1", "localhost", 0, "localhost", 0)),
    ],
)
def test_a_listeners_name_is_upper_case(text: str, expected: Listener) -> None:
    """As Kafka compares names. The advertised address is the bound address by default."""
    assert parse_listener(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "CLIENT", "CLIENT=", "CLIENT=host", "CLIENT=host:", "CLIENT=host:port", "=host:1", "CLIENT=a:b:1"),
        *("CLIENT=host:1,", "CLIENT=host:1,other", "CLIENT=host:1,:2", "CLIENT=host:1,a:1,b:2", "CLIENT://host:1"),
        *("C L=h:1", "CLIENT= host:1", "CLIENT=host:1, b:2", "CLIENT=[::1:9092", "CLIENT=host:123456"),
        f"{'X' * 65}=host:1",
    ],
)
def test_an_invalid_listener_is_refused_with_the_expected_form(text: str) -> None:
    """Errors name the cause, the object and a remedy."""
    with pytest.raises(ValueError, match=r"is not NAME=HOST:PORT or NAME=HOST:PORT,ADVERTISED_HOST:ADVERTISED_PORT"):
        parse_listener(text)


@pytest.mark.parametrize("text", ["CLIENT=host:65536", "CLIENT=host:1,other:99999"])
def test_an_invalid_port_is_refused(text: str) -> None:
    """16 bits."""
    with pytest.raises(ValueError, match="has a port over 65535"):
        parse_listener(text)


@pytest.mark.parametrize("text", ["CLIENT=0.0.0.0:9092", "CLIENT=[::]:9092", "CLIENT=:9092", "CLIENT=host:1,0.0.0.0:1"])
def test_a_wildcard_address_cannot_be_advertised(text: str) -> None:
    """Brokers and clients would connect to their own machine."""
    with pytest.raises(ValueError, match="add the advertised address after a comma"):
        parse_listener(text)


def settings(**changed: object) -> ControllerSettings:
    """Valid settings, with some of them changed."""
    given: dict[str, object] = {
        "zookeeper": "zk:2181",
        "controller_id": 1000,
        "listeners": (INTERNAL, CLIENT),
        "inter_broker_listener": "INTERNAL",
    }
    return ControllerSettings(**(given | changed))


def test_valid_settings_are_accepted() -> None:
    """The defaults are those of the command line."""
    taken = settings(controller_id=0)

    assert (
        taken.session_timeout_ms,
        taken.rack,
        taken.metrics_host,
        taken.metrics_port,
    ) == (6_000, None, "127.0.0.1", 9404)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"listeners": ()}, "at least one listener"),
        ({"listeners": (INTERNAL, INTERNAL)}, "duplicate listener names: INTERNAL, INTERNAL"),
        ({"inter_broker_listener": "OTHER"}, "listener OTHER is not among the listeners INTERNAL, CLIENT"),
        ({"controller_id": -1}, "id is -1; it must be at least 0"),
    ],
)
def test_invalid_settings_are_refused_with_a_reason(changed: dict[str, object], message: str) -> None:
    """Before anything is opened."""
    with pytest.raises(ValueError, match=message):
        settings(**changed)


@pytest.mark.parametrize(
    ("listener", "why"),
    [
        ("A=SSL://h:1", "uses SSL: it needs a TLS certificate"),
        ("A=SASL_PLAINTEXT://h:1", "uses SASL_PLAINTEXT: it needs a SASL mechanism"),
    ],
)
def test_a_listener_without_what_its_protocol_needs_is_refused(listener: str, why: str) -> None:
    """No listener falls back to a weaker protocol."""
    with pytest.raises(ValueError, match=why):
        ControllerSettings("zk:1", 1000, (parse_listener(listener),), "A")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listeners_protocol_precedes_its_host(protocol: str) -> None:
    """As in Kafka's `listeners`."""
    assert protocol == parse_listener(f"A={protocol}://h:1,k:2").security_protocol
    with pytest.raises(ValueError, match="is not NAME=HOST:PORT"):
        parse_listener("A=HTTP://h:1")
