"""TLS and SASL of a controller's listeners in Kafka's properties file."""

from pathlib import Path

import pytest

from controller_core.shell.quorum.settings_reading import read_settings
from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.jaas import SaslLogin, parse_jaas
from kafka_node.security.listener_settings import ListenerSecurity
from kafka_node.security.settings import ClientAuth, TlsFiles
from tests.controller_core.shell.quorum.properties import DYNAMIC, without

PLAIN_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="controller" password="secret; \\" = " user_controller="secret" user_broker=\'other\';'
)
SASL = DYNAMIC | {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": PLAIN_LOGIN,
}
TLS = DYNAMIC | {
    "listener.security.protocol.map": "CONTROLLER:SSL",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/tls/store.pem",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/tls/ca.pem",
    "ssl.client.auth": "required",
}


def security(values: dict[str, str]) -> ListenerSecurity:
    """Return the security of the controller's listener; no name of the file is without effect."""
    read = read_settings(values)
    assert (read.unused, read.unknown) == ((), ())
    return read.settings.security["CONTROLLER"]


def refusal(values: dict[str, str]) -> str:
    """Return the message with which the values are refused."""
    with pytest.raises(SettingError) as raised:
        read_settings(values)
    return str(raised.value)


def test_plain_has_the_users_and_the_login_of_its_module() -> None:
    """Signs and escapes within quotation marks are part of a value."""
    found = security(SASL)

    assert found.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert found.plain_users == {"controller": "secret", "broker": "other"}
    assert found.login == SaslLogin("PLAIN", "controller", 'secret; " = ')


def test_passwords_are_not_shown() -> None:
    """The settings may be logged."""
    assert "secret" not in repr(read_settings(SASL))
    assert "secret" not in refusal(
        SASL | {"plain.sasl.jaas.config": "", "listener.name.controller.plain.sasl.jaas.config": PLAIN_LOGIN[:-1]}
    )


def test_tls_has_the_files_of_the_stores() -> None:
    """The key is in the certificate's file."""
    found = security(TLS)

    assert found.tls == TlsFiles(certificate=Path("/tls/store.pem"), ca=Path("/tls/ca.pem"))
    assert found.tls_client_auth is ClientAuth.REQUIRED


def test_a_listeners_own_setting_has_priority() -> None:
    """listener.name.LISTENER.SETTING, with the listener in small letters."""
    assert security(TLS | {"listener.name.controller.ssl.client.auth": "none"}).tls_client_auth is ClientAuth.NONE


def test_an_empty_algorithm_turns_the_comparison_of_host_names_off() -> None:
    """ssl.endpoint.identification.algorithm."""
    assert security(TLS).tls_verifies_host_names is True
    assert security(TLS | {"ssl.endpoint.identification.algorithm": ""}).tls_verifies_host_names is False
    assert "it is https, or empty" in refusal(TLS | {"ssl.endpoint.identification.algorithm": "LDAPS"})


def test_other_stores_than_pem_and_java_classes_are_refused_with_what_to_do() -> None:
    """Steward has no Java."""
    assert refusal(without(TLS, "ssl.keystore.type")) == (
        "ssl.keystore.type is JKS: Steward reads PEM files; convert it and set PEM"
    )
    assert refusal(TLS | {"ssl.key.password": "x"}) == (
        "ssl.key.password is not supported: keys with a passphrase are not supported"
    )
    assert refusal(SASL | {"sasl.server.callback.handler.class": "x"}) == (
        "sasl.server.callback.handler.class is not supported: Steward cannot run Java classes"
    )


def test_missing_parts_are_named() -> None:
    """Before anything is opened."""
    assert refusal(without(TLS, "ssl.keystore.location")) == "listener CONTROLLER uses SSL: set ssl.keystore.location"
    assert refusal(without(TLS, "ssl.truststore.location")) == (
        "listener CONTROLLER asks for certificates: set ssl.truststore.location"
    )
    assert refusal(without(SASL, "listener.name.controller.plain.sasl.jaas.config")) == (
        "listener CONTROLLER uses PLAIN: set plain.sasl.jaas.config"
    )
    assert refusal(without(SASL, "sasl.enabled.mechanisms")) == (
        "sasl.enabled.mechanisms: the SASL mechanism GSSAPI is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    )


@pytest.mark.parametrize(
    "text",
    ["", "M", "M required", "M required a;", "M required a=;", "M required a=b", 'M required a="b;', "M; required"],
)
def test_a_login_module_in_another_form_is_refused(text: str) -> None:
    """MODULE FLAG NAME=VALUE …;."""
    with pytest.raises(SettingError):
        parse_jaas(text, setting="plain.sasl.jaas.config")
