"""Credentials for the client and for kopf."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.kube.login import LoginError, configuration, connection_info, current_namespace, has_proxy


def kubeconfig(folder: Path, **user: str) -> Path:
    """A kubeconfig with two contexts."""
    path = folder / "kubeconfig"
    clusters = [{"name": name, "cluster": {"server": f"https://{name}.example:6443"}} for name in ("one", "two")]
    contexts = [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("one", "two")]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "contexts": contexts,
        "users": [{"name": "me", "user": user}],
        "current-context": "one",
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


async def test_the_kubeconfig_and_its_context_define_server_and_user(tmp_path: Path) -> None:
    """The same for both clients; TLS is verified."""
    path = kubeconfig(tmp_path, token="secret-token")

    current = await connection_info(await configuration(path, None))
    other = await connection_info(await configuration(path, "two"))

    assert (current.server, current.token, current.scheme) == ("https://one.example:6443", "secret-token", "Bearer")
    assert other.server == "https://two.example:6443"
    assert not current.insecure


async def test_a_user_without_a_token_has_none(tmp_path: Path) -> None:
    """Client certificates, for example."""
    info = await connection_info(await configuration(kubeconfig(tmp_path), None))

    assert (info.token, info.scheme) == (None, None)


async def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by kubectl: HTTPS_PROXY and NO_PROXY. Without one the session does not read the environment before each request."""
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    without = await configuration(kubeconfig(tmp_path), None)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    behind = await configuration(kubeconfig(tmp_path), None)
    monkeypatch.setenv("NO_PROXY", "one.example,10.0.0.1:6443")

    assert without.client_session_kwargs == {"trust_env": False}
    assert behind.client_session_kwargs == {"trust_env": True}
    assert [has_proxy(url) for url in ("https://one.example:6443", "https://two.example:6443")] == [False, True]


async def test_missing_credentials_are_reported(tmp_path: Path) -> None:
    """With the place where they were expected."""
    with pytest.raises(LoginError, match="nowhere"):
        await configuration(tmp_path / "nowhere", None)
    with pytest.raises(LoginError):
        await configuration(kubeconfig(tmp_path), "no-such-context")


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    """As for kubectl; `default` where the context has none, or there is no kubeconfig."""
    path = kubeconfig(tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["contexts"][1]["context"]["namespace"] = "shop"
    path.write_text(json.dumps(content), encoding="utf-8")

    assert current_namespace(path, None) == "default"
    assert current_namespace(path, "two") == "shop"
    assert current_namespace(tmp_path / "nowhere", None) == "default"
