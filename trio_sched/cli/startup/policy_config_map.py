"""Fetches the policy in a ConfigMap that flags of former versions name."""

import trio

from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy import POLICY_KEY, PolicyConfigMap
from trio_sched.errors import first_leaf
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.kube_client.kinds import CONFIG_MAP_KIND
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.verbs import get
from trio_sched.objects.config_map import ConfigMap


def fetch_policy(source: PolicyConfigMap, connection: ConnectionSettings) -> str:
    """The text of the policy in *source*, read once, before anything else runs.

    Raises:
        ConfigError: there is no such ConfigMap, or no policy in it, or the API server does not answer.
    """
    where = f"ConfigMap {source.namespace}/{source.name}"
    try:
        config_map = trio.run(_fetch, source, connection)
    except* KubeClientError as group:
        problem = first_leaf(group)
        raise ConfigError.of(f"cannot read the policy in {where}: {problem}") from group
    if POLICY_KEY not in config_map.data:
        found = ", ".join(sorted(config_map.data)) or "nothing"
        raise ConfigError.of(f"{where} has no policy: it must be under the key {POLICY_KEY}, and there is {found}")
    return config_map.data[POLICY_KEY]


async def _fetch(source: PolicyConfigMap, connection: ConnectionSettings) -> ConfigMap:
    async with connect(connection) as client:
        return await get(client, CONFIG_MAP_KIND, source.name, namespace=source.namespace)
