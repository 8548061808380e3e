"""The peers of the light broker's start."""

from bench.light_broker.start import SCRIPT_OPTIONS, as_its_script_does
from lab.peers.java_process import java_command


def test_kafka_starts_with_the_options_of_its_script_instead_of_the_labs() -> None:
    """Source: kafka-server-start.sh and kafka-run-class.sh of Kafka 3.9."""
    command = java_command("kafka.Kafka", "broker.properties", heap="96m")
    java, log4j, classes, *rest = (command[0], command[-5], command[-3], *command[-2:])

    assert as_its_script_does(command) == [java, *SCRIPT_OPTIONS, log4j, "-cp", classes, *rest]
    assert log4j.startswith("-Dlog4j.configuration=")
