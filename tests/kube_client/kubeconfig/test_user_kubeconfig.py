import json
from pathlib import Path

import pytest

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings


def write(path: Path, current: str | None, **servers: str) -> str:
    """A kubeconfig with a context per server, of the same name."""
    document = {
        "current-context": current or "",
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in servers],
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in servers.items()],
        "users": [{"name": "u", "user": {}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return str(path)


def test_the_file_is_the_one_that_kubectl_takes(tmp_path: Path) -> None:
    home = write(tmp_path / "home" / ".kube" / "config", "a", a="http://home:1")
    first = write(tmp_path / "first", None, b="http://first:1")
    second = write(tmp_path / "second", "b", b="http://second:1", c="http://second:2")
    environ = {"HOME": str(tmp_path / "home")}
    assert user_settings("", "", environ).server == "http://home:1"
    environ["KUBECONFIG"] = f"{first}:{second}:{tmp_path / 'gone'}"
    assert user_settings("", "", environ).server == "http://first:1"  # the first that has a name wins
    assert user_settings("", "c", environ).server == "http://second:2"
    assert user_settings(home, "", environ).server == "http://home:1"


def test_without_a_file_a_pod_has_its_service_account(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match="serviceaccount"):  # which is not mounted here
        user_settings("", "", environ)


def test_what_is_missing_is_named_with_what_there_is(tmp_path: Path) -> None:
    path = write(tmp_path / "config", None, production="http://p:1", staging="http://s:1")
    problems = {
        ("", ""): f"there is no kubeconfig: {tmp_path / '.kube' / 'config'} does not exist; give one with --kubeconfig",
        (path, ""): f"{path}: no current-context is set; give one of them with --context NAME",
        (path, "productoin"): f'{path}: there is no context "productoin"; did you mean "production"?',
        (path, "x"): f'{path}: there is no context "x"; there are: production, staging',
        (str(tmp_path / "gone"), ""): "no such file or directory",
    }
    for (file, context), expected in problems.items():
        with pytest.raises(KubeconfigError) as caught:
            user_settings(file, context, {"HOME": str(tmp_path)})
        assert expected in str(caught.value)
    with pytest.raises(KubeconfigError, match="KUBECONFIG names /gone;"):
        user_settings("", "", {"KUBECONFIG": "/gone"})
