"""Security of the commands that connect to brokers as a client (`sampler`, `controller unregister-broker`)."""

from dataclasses import replace

from kafka_node.security.aws_identity import AwsIdentity, check_region
from kafka_node.security.brokers import BrokerSecurity, broker_security
from kafka_node.security.settings import SecuritySettings, TlsFiles
from kafka_wire.net.client import BearerCredentials
from steward.options.security import BrokerSecurityOptions, MskLoginOptions

NO_MSK_LOGIN = MskLoginOptions()


def broker_tls_files(options: BrokerSecurityOptions) -> TlsFiles:
    """Return the TLS files for connections to brokers. Raises ValueError for a key without a certificate."""
    return TlsFiles(certificate=options.broker_tls_certificate, key=options.broker_tls_key, ca=options.broker_tls_ca)


def client_security(
    options: BrokerSecurityOptions, protocol: str, msk: MskLoginOptions = NO_MSK_LOGIN
) -> BrokerSecurity:
    """Read the files that the options name. Raises ValueError, also where the security protocol needs credentials."""
    login = None if msk == NO_MSK_LOGIN else _msk_login(msk, options, protocol)
    security = broker_security(
        SecuritySettings(
            broker_tls=broker_tls_files(options),
            broker_sasl_mechanism=options.broker_sasl_mechanism,
            broker_sasl_username=options.broker_sasl_username,
            broker_sasl_password_file=options.broker_sasl_password_file,
            broker_sasl_token_file=options.broker_sasl_token_file,
        )
    )
    if login is not None:
        return replace(security, sasl=login)
    if protocol.startswith("SASL") and security.sasl is None:
        raise ValueError(f"{protocol} needs a SASL mechanism, and a user name and a password file, or a token file")
    return security


def _msk_login(msk: MskLoginOptions, options: BrokerSecurityOptions, protocol: str) -> BearerCredentials:
    if msk.msk_region is None:
        raise ValueError("--msk-role-arn needs --msk-region")
    if protocol != "SASL_SSL":
        raise ValueError("--msk-region needs --security-protocol SASL_SSL: tokens are sent over TLS only")
    if options.broker_sasl_mechanism is not None:
        raise ValueError("--msk-region is a login of its own: omit --broker-sasl-mechanism")
    # A process without this login holds neither an HTTP client nor AWS's library.
    from kafka_node.security.msk_iam import request_msk_token  # noqa: PLC0415
    from kafka_node.security.tokens import KeptToken  # noqa: PLC0415

    identity = AwsIdentity(check_region(msk.msk_region), role_arn=msk.msk_role_arn)
    return BearerCredentials(KeptToken(lambda: request_msk_token(identity)))
