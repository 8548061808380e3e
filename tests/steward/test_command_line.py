"""The command line: wrong options are reported with exit code 2, right ones become the settings of the process."""

from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import steward.controller_command
from controller_core.shell.settings import (
    AuthorizerSettings,
    ControllerSettings,
    LeaderBalance,
    Listener,
    ZooKeeperSecurity,
)
from kafka_node.security.settings import ClientAuth, SecuritySettings, TlsFiles
from kafka_operator import run as operator_run
from kafka_operator.settings import OperatorSettings
from steward.main import app

CONTROLLER = ("controller", "--zookeeper", "zk:2181/kafka", "--listener", "INTERNAL=10.0.0.1:9090")
WRONG, RIGHT = 2, 0
COLUMNS = {"COLUMNS": "500", "TERMINAL_WIDTH": "500"}
"""Wide enough that no message is wrapped."""


LOGIN = ("--broker-sasl-mechanism", "PLAIN", "--broker-sasl-username", "us", "--broker-sasl-password-file", "password")
"""Credentials for connections to brokers."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ControllerSettings | OperatorSettings]:
    """The settings with which processes were started; nothing is started."""
    found: list[ControllerSettings | OperatorSettings] = []

    def record(settings: ControllerSettings | OperatorSettings) -> int:
        found.append(settings)
        return RIGHT

    monkeypatch.setattr(steward.controller_command, "run_controller", record)
    monkeypatch.setattr(operator_run, "run", record)
    for name in ("KUBECONFIG", "STEWARD_ZOOKEEPER", "STEWARD_LISTENERS"):
        monkeypatch.delenv(name, raising=False)
    return found


def run_steward(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run a command and return its exit code and output."""
    result = CliRunner(env=COLUMNS | environment).invoke(app, list(arguments))
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("controller",), "Missing option '--zookeeper'"),
        (("controller", "--zookeeper", "zk:2181"), "Missing option '--listener'"),
        ((*CONTROLLER, "--authorizer", "--super-user", "admin"), "super user 'admin' is not TYPE:NAME"),
        ((*CONTROLLER, "--super-user", "User:admin"), "have no effect without the authorizer"),
        ((*CONTROLLER, "--listener", "CLIENT"), "listener 'CLIENT' is not NAME=HOST:PORT"),
        ((*CONTROLLER, "--listener", "CLIENT=0.0.0.0:9092"), "add the advertised address after a comma"),
        ((*CONTROLLER, "--listener", "internal=10.0.0.2:1"), "duplicate listener names: INTERNAL, INTERNAL"),
        ((*CONTROLLER, "--inter-broker-listener", "OTHER"), "OTHER is not among the listeners INTERNAL"),
        ((*CONTROLLER, "--zookeeper", "zk:port"), "'zk:port' in the connect string"),
        ((*CONTROLLER, "--zookeeper", ""), "is not host:port"),
        ((*CONTROLLER, "--id", "-1"), "Invalid value for '--id'"),
        ((*CONTROLLER, "--id", "one"), "Invalid value for '--id'"),
        ((*CONTROLLER, "--session-timeout-ms", "10"), "Invalid value for '--session-timeout-ms'"),
        (
            (*CONTROLLER, "--leader-imbalance-check-interval-seconds", "0"),
            "configuration leader.imbalance.check.interval.seconds: Value must be at least 1",
        ),
        (
            (*CONTROLLER, "--leader-imbalance-per-broker-percentage", "ten"),
            "Invalid value for '--leader-imbalance-per-broker-percentage'",
        ),
        ((*CONTROLLER, "--metrics-port", "70000"), "Invalid value for '--metrics-port'"),
        ((*CONTROLLER, "--listener", "CLIENT=SSL://h:1"), "uses SSL: it needs a TLS certificate"),
        ((*CONTROLLER, "--tls-client-auth", "perhaps"), "'perhaps' is not a valid ClientAuth"),
        (
            (*CONTROLLER, "--tls-principal-mapping-rules", "CN"),
            "ssl.principal.mapping.rules: the rule CN must be DEFAULT",
        ),
        ((*CONTROLLER, "--sasl-mechanism", "GSSAPI"), "GSSAPI is not one of PLAIN"),
        ((*CONTROLLER, "--broker-sasl-username", "us"), "user name and password file are all needed"),
        ((*CONTROLLER, *LOGIN), "set --authorizer to check them against ACLs, or --no-authorizer"),
        ((*CONTROLLER, "--log-level", "LOUD"), "Invalid value for --log-level: Unknown level: 'LOUD'"),
        ((*CONTROLLER, "--log-format", "xml"), "Invalid value for '--log-format'"),
        ((*CONTROLLER, "--nonsense"), "No such option"),
        (("operator", "--log-level", "LOUD"), "Invalid value for --log-level: Unknown level: 'LOUD'"),
        (("operator", "--resync-interval-s", "0"), "Invalid value for '--resync-interval-s'"),
        (("operator", "--metrics-port", "-1"), "Invalid value for '--metrics-port'"),
        (("operator", "--lease", "operator"), "--lease needs --own-namespace"),
        (("operator", "--shards", "2"), "--shards needs --lease"),
        (("operator", "--shards", "0"), "Invalid value for '--shards'"),
        (
            ("operator", "--lease", "x", "--own-namespace", "kafka", "--shards", "33"),
            "--shards is 33: it is 1 to 32",
        ),
        (("brokers",), "No such command 'brokers'"),
        (("broker",), "add --standalone"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_reported_before_a_process_starts(
    started: list[ControllerSettings | OperatorSettings], arguments: tuple[str, ...], message: str
) -> None:
    """An error names what happened, to what, and what to do."""
    code, output = run_steward(*arguments)

    assert message in output
    assert code == WRONG
    assert started == []


def test_required_options_only_give_the_defaults(
    started: list[ControllerSettings | OperatorSettings],
) -> None:
    """The first listener is the inter-broker listener; the id is the default of reserved.broker.max.id."""
    assert run_steward(*CONTROLLER) == (RIGHT, "")

    listener = Listener("INTERNAL", "10.0.0.1", 9090, "10.0.0.1", 9090)
    assert started == [ControllerSettings("zk:2181/kafka", 1000, (listener,), "INTERNAL")]


def test_all_options_reach_the_controller(started: list[ControllerSettings | OperatorSettings]) -> None:
    """Names of listeners are compared as Kafka compares them."""
    options = (
        *("--listener", "client=0.0.0.0:9092,kafka.example:443", "--inter-broker-listener", "internal", "--id", "999"),
        *("--session-timeout-ms", "3000", "--rack", "a", "--metrics-host", "0.0.0.0", "--metrics-port", "0"),
        *("--no-auto-leader-rebalance-enable", "--leader-imbalance-per-broker-percentage", "25"),
        *("--leader-imbalance-check-interval-seconds", "60", "--log-format", "text", "--log-level", "debug"),
    )
    assert run_steward(*CONTROLLER, *options) == (RIGHT, "")

    internal = Listener("INTERNAL", "10.0.0.1", 9090, "10.0.0.1", 9090)
    client = Listener("CLIENT", "0.0.0.0", 9092, "kafka.example", 443)
    balance = LeaderBalance(is_enabled=False, percentage=25, check_interval_seconds=60)
    expected = ControllerSettings(
        "zk:2181/kafka", 999, (internal, client), "INTERNAL", 3000, "a", "0.0.0.0", 0, balance
    )
    assert started == [expected]


def test_operator_manages_pods_only_on_request(started: list[ControllerSettings | OperatorSettings]) -> None:
    """The same applies to drained nodes and to its own namespace."""
    assert run_steward("operator") == (RIGHT, "")
    assert run_steward("operator", "--pods", STEWARD_DRAIN="true", STEWARD_OWN_NAMESPACE="kafka") == (RIGHT, "")
    lease = ("--own-namespace", "kafka", "--lease", "operator", "--shards", "3")
    assert run_steward("operator", *lease, STEWARD_IDENTITY="pod") == (RIGHT, "")

    bare, full, sharded = started
    assert isinstance(sharded, OperatorSettings)
    assert (sharded.lease, sharded.identity, sharded.shards) == ("operator", "pod", 3)
    assert isinstance(bare, OperatorSettings)
    assert isinstance(full, OperatorSettings)
    assert (bare.pods, bare.drain, bare.own_namespace) == (False, False, None)
    assert (full.pods, full.drain, full.own_namespace) == (True, True, "kafka")


def test_every_option_can_be_an_environment_variable(started: list[ControllerSettings | OperatorSettings]) -> None:
    """As a pod's manifest sets them; listeners are separated by spaces."""
    code, output = run_steward(
        "controller",
        STEWARD_ZOOKEEPER="zk:2181",
        STEWARD_LISTENERS="INTERNAL=10.0.0.1:9090 CLIENT=0.0.0.0:9092,kafka.example:443",
        STEWARD_INTER_BROKER_LISTENER="INTERNAL",
        STEWARD_ID="7",
        STEWARD_SESSION_TIMEOUT_MS="4000",
        STEWARD_RACK="b",
        STEWARD_METRICS_HOST="0.0.0.0",
        STEWARD_METRICS_PORT="1234",
        STEWARD_AUTO_LEADER_REBALANCE_ENABLE="false",
        STEWARD_LEADER_IMBALANCE_PER_BROKER_PERCENTAGE="0",
        STEWARD_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS="1",
        STEWARD_LOG_FORMAT="text",
        STEWARD_LOG_LEVEL="WARNING",
    )
    assert (code, output) == (RIGHT, "")

    internal = Listener("INTERNAL", "10.0.0.1", 9090, "10.0.0.1", 9090)
    client = Listener("CLIENT", "0.0.0.0", 9092, "kafka.example", 443)
    balance = LeaderBalance(is_enabled=False, percentage=0, check_interval_seconds=1)
    expected = ControllerSettings("zk:2181", 7, (internal, client), "INTERNAL", 4000, "b", "0.0.0.0", 1234, balance)
    assert started == [expected]


def test_authorizer_options_give_authorizer_settings(started: list[ControllerSettings | OperatorSettings]) -> None:
    """By options or by the environment; without them there is no authorizer."""
    run_steward(*CONTROLLER)
    run_steward(
        *CONTROLLER, "--authorizer", "--super-user", "User:a", "--super-user", "User:b", "--allow-everyone-if-no-acl"
    )
    run_steward(*CONTROLLER, STEWARD_AUTHORIZER="true", STEWARD_SUPER_USERS="User:a User:b")

    found = [settings.authorizer for settings in started if isinstance(settings, ControllerSettings)]
    both = frozenset({"User:a", "User:b"})
    expected = [
        AuthorizerSettings(),
        AuthorizerSettings(is_enabled=True, super_users=both, allow_everyone_if_no_acl=True),
        AuthorizerSettings(is_enabled=True, super_users=both),
    ]
    assert found == expected


@pytest.mark.parametrize("option", ["--authorizer", "--no-authorizer"])
def test_authenticating_to_brokers_requires_a_choice_of_authorizer(
    started: list[ControllerSettings | OperatorSettings], option: str
) -> None:
    """Secure by default: relayed requests run on the broker with the controller's permissions."""
    assert run_steward(*CONTROLLER, *LOGIN, option) == (RIGHT, "")

    (settings,) = started
    assert isinstance(settings, ControllerSettings)
    assert settings.authorizer.is_enabled is (option == "--authorizer")


def test_security_options_name_files(started: list[ControllerSettings | OperatorSettings]) -> None:
    """By options or by the environment; no option takes a secret."""
    options = (
        "--tls-certificate",
        "c.pem",
        "--tls-key",
        "k.pem",
        "--tls-ca",
        "ca.pem",
        "--tls-client-auth",
        "required",
        "--tls-principal-mapping-rules",
        "RULE:^CN=(.*)$/$1/L, DEFAULT",
    )
    options += ("--sasl-mechanism", "PLAIN", "--sasl-mechanism", "SCRAM-SHA-512", "--sasl-users-file", "users")
    options += ("--broker-sasl-mechanism", "PLAIN", "--broker-sasl-username", "us", "--broker-tls-ca", "b.pem")
    options += ("--broker-sasl-password-file", "password", "--zookeeper-tls-ca", "z.pem", "--zookeeper-set-acl")
    options += ("--no-authorizer",)
    options += ("--zookeeper-digest-file", "digest", "--connections-max-reauth-ms", "3600000")
    listener = "CLIENT=SASL_SSL://0.0.0.0:9093,kafka.example:443"
    assert run_steward("controller", "--zookeeper", "zk:2181", "--listener", listener, *options) == (RIGHT, "")
    environment = {
        "STEWARD_SASL_MECHANISMS": "PLAIN SCRAM-SHA-512",
        "STEWARD_SASL_USERS_FILE": "users",
        "STEWARD_TLS_CERTIFICATE": "c.pem",
        "STEWARD_ZOOKEEPER_TLS": "true",
    }
    assert run_steward("controller", "--zookeeper", "zk:2181", "--listener", listener, **environment) == (RIGHT, "")

    by_options, by_environment = started
    assert isinstance(by_options, ControllerSettings)
    assert isinstance(by_environment, ControllerSettings)
    assert [listener.security_protocol for listener in by_options.listeners] == ["SASL_SSL"]
    expected = SecuritySettings(
        tls=TlsFiles(certificate=Path("c.pem"), key=Path("k.pem"), ca=Path("ca.pem")),
        tls_client_auth=ClientAuth.REQUIRED,
        tls_principal_mapping_rules="RULE:^CN=(.*)$/$1/L, DEFAULT",
        sasl_mechanisms=("PLAIN", "SCRAM-SHA-512"),
        sasl_users_files=(Path("users"),),
        connections_max_reauth_ms=3_600_000,
        broker_tls=TlsFiles(ca=Path("b.pem")),
        broker_sasl_mechanism="PLAIN",
        broker_sasl_username="us",
        broker_sasl_password_file=Path("password"),
    )
    assert by_options.security == expected
    expected_of_zookeeper = ZooKeeperSecurity(tls=TlsFiles(ca=Path("z.pem")), digest_file=Path("digest"), set_acl=True)
    assert by_options.zookeeper_security == expected_of_zookeeper
    assert by_environment.security.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert by_environment.zookeeper_security.tls == TlsFiles()


def test_exit_code_is_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch, started: list[ControllerSettings | OperatorSettings]
) -> None:
    """A supervisor decides by it whether to restart the process."""
    monkeypatch.setattr(steward.controller_command, "run_controller", lambda _: 17)

    assert run_steward(*CONTROLLER)[0] == 17
    assert started == []


def test_options_reach_the_operator(started: list[ControllerSettings | OperatorSettings]) -> None:
    """Namespaces are repeatable, and separated by spaces in the environment."""
    options = ("--context", "kind", "--namespace", "a", "--namespace", "b", "--resync-interval-s", "5")
    assert run_steward("operator", *options, "--metrics-port", "0", KUBECONFIG="me.kubeconfig") == (RIGHT, "")
    assert run_steward("operator", STEWARD_NAMESPACES="c d") == (RIGHT, "")

    first, second = started
    assert isinstance(first, OperatorSettings)
    assert isinstance(second, OperatorSettings)
    actual = (first.namespaces, first.kubeconfig, first.context, first.resync_interval_s)
    assert actual == (("a", "b"), Path("me.kubeconfig"), "kind", 5.0)
    assert (second.namespaces, second.kubeconfig) == (("c", "d"), None)


@pytest.mark.parametrize("command", [(), ("controller",), ("operator",)])
def test_help_is_printed(command: tuple[str, ...]) -> None:
    """For the program and for each command."""
    code, output = run_steward(*command, "--help")

    assert code == RIGHT
    assert "Usage" in output


def test_the_version_is_that_of_the_package() -> None:
    """`steward --version`."""
    assert run_steward("--version") == (RIGHT, f"steward {version('kafka-steward')}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_commands_are_completed_by_the_shell(shell: str) -> None:
    """The script of `--show-completion` calls `steward` with the words so far."""
    words = {"COMP_WORDS": "steward con", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "steward con"}
    words["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"

    exit_code, output = run_steward(**words, _STEWARD_COMPLETE=f"complete_{shell}")

    assert (exit_code, "controller" in output, "operator" in output) == (RIGHT, True, False)
