"""Where a policy is to be read from; `trio_sched.cli` reads it."""

from typing import Final

from attrs import frozen

POLICY_KEY: Final = "policy.cfg"
"""The key of a ConfigMap under which its policy stands."""


@frozen
class PolicyFile:
    """A policy in a file."""

    path: str


@frozen
class PolicyConfigMap:
    """A policy in a ConfigMap, under `POLICY_KEY`."""

    namespace: str
    name: str


PolicySource = PolicyFile | PolicyConfigMap


def chosen_policy(*, path: str, config_map: str, namespace: str, file_first: bool) -> PolicySource | None:
    """The place of the policy among those that an old command line or document names; None if it names none.

    Args:
        path: of a file; empty if none.
        config_map: name of a ConfigMap; empty if none.
        namespace: of the ConfigMap.
        file_first: whether the file takes precedence even if there is a ConfigMap.
    """
    if path and (file_first or not config_map):
        return PolicyFile(path)
    return PolicyConfigMap(namespace, config_map) if config_map else None
