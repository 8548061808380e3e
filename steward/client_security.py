"""Security of the commands that connect to brokers as a client (`sampler`, `controller unregister-broker`)."""

from kafka_node.security.brokers import BrokerSecurity, broker_security
from kafka_node.security.settings import SecuritySettings, TlsFiles
from steward.options.security import BrokerSecurityOptions


def broker_tls_files(options: BrokerSecurityOptions) -> TlsFiles:
    """Return the TLS files for connections to brokers. Raises ValueError for a key without a certificate."""
    return TlsFiles(certificate=options.broker_tls_certificate, key=options.broker_tls_key, ca=options.broker_tls_ca)


def client_security(options: BrokerSecurityOptions, protocol: str) -> BrokerSecurity:
    """Read the files that the options name. Raises ValueError, also where the security protocol needs credentials."""
    security = broker_security(
        SecuritySettings(
            broker_tls=broker_tls_files(options),
            broker_sasl_mechanism=options.broker_sasl_mechanism,
            broker_sasl_username=options.broker_sasl_username,
            broker_sasl_password_file=options.broker_sasl_password_file,
            broker_sasl_token_file=options.broker_sasl_token_file,
        )
    )
    if protocol.startswith("SASL") and security.sasl is None:
        raise ValueError(f"{protocol} needs a SASL mechanism, and a user name and a password file, or a token file")
    return security
