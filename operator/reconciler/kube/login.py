"""Credentials for the Kubernetes API: one configuration for the client and for kopf's watches alike.

In a pod the service account; elsewhere a kubeconfig, by path, KUBECONFIG or the default file.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import kopf
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, list_kube_config_contexts, load_incluster_config, load_kube_config

SCHEME_AND_TOKEN = 2

SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The namespace of a pod, mounted with the token of its service account."""

DEFAULT_NAMESPACE = "default"


class LoginError(Exception):
    """No usable credentials; the message names the places that were searched."""


async def configuration(kubeconfig: Path | None, context: str | None) -> Configuration:
    """Return the client's configuration; LoginError when there is none."""
    found = Configuration()
    try:
        if kubeconfig is None and context is None:
            try:
                load_incluster_config(client_configuration=found)
            except ConfigException:
                await load_kube_config(client_configuration=found)
        else:
            path = None if kubeconfig is None else str(kubeconfig)
            await load_kube_config(config_file=path, context=context, client_configuration=found)
    except (ConfigException, OSError) as error:
        where = "the service account and the kubeconfig" if kubeconfig is None else str(kubeconfig)
        raise LoginError(f"no credentials for the Kubernetes API in {where}: {error}") from error
    found.client_session_kwargs = {"trust_env": has_proxy(found.host)}
    return found


def has_proxy(url: str) -> bool:
    """Return whether the environment (HTTPS_PROXY, NO_PROXY) names a proxy for a URL.

    The client's session would otherwise read the environment and the user's .netrc before each request, a tenth of the processor time
    of a request.
    """
    parts = urlsplit(url)
    return parts.scheme in getproxies() and not proxy_bypass(parts.netloc)


def current_namespace(kubeconfig: Path | None, context: str | None) -> str:
    """Return the namespace of the context, or of the pod, as kubectl does."""
    if kubeconfig is None and context is None and SERVICE_ACCOUNT_NAMESPACE.is_file():
        return SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip()
    try:
        contexts, active = list_kube_config_contexts(None if kubeconfig is None else str(kubeconfig))
    except (ConfigException, OSError):
        return DEFAULT_NAMESPACE
    chosen = (
        active
        if context is None
        else next((candidate for candidate in contexts if candidate["name"] == context), active)
    )
    return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)


async def connection_info(found: Configuration) -> kopf.ConnectionInfo:
    """Return the same credentials in kopf's form."""
    header = await found.get_api_key_with_prefix("BearerToken") or ""
    parts = header.split(" ", 1)
    scheme, token = parts if len(parts) == SCHEME_AND_TOKEN else (None, header or None)
    return kopf.ConnectionInfo(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        scheme=scheme.capitalize() if scheme else None,
        token=token,
        username=found.username or None,
        password=found.password or None,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
    )
