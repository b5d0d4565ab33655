"""Flags of former kube-schedulers that 1.36 does not know; they are accepted here, but not listed in the help."""

from typing import Final

from trio_sched.cli.flags.go_flags import BOOL, FLOAT32, INT, INT32, IP, STRING, Flag

LEGACY_FLAGS: Final[tuple[Flag, ...]] = (
    Flag("address", IP, "", "The address of the port without TLS."),
    Flag("algorithm-provider", STRING, "", "What runs: DefaultProvider or ClusterAutoscalerProvider."),
    Flag("bind-pods-burst", INT32, 0, "Burst of bindings."),
    Flag("bind-pods-qps", FLOAT32, 0.0, "Bindings per second."),
    Flag("failure-domains", STRING, "", "The labels that an empty topologyKey stood for."),
    Flag("google-json-key", STRING, "", "A key of a Google Cloud account."),
    Flag("hard-pod-affinity-symmetric-weight", INT32, 1, "What the required affinity of others counts."),
    Flag("lock-object-name", STRING, "", "The name of the lock of the leader election."),
    Flag("lock-object-namespace", STRING, "", "The namespace of that lock."),
    Flag("policy-config-file", STRING, "", "A file with a policy."),
    Flag("policy-configmap", STRING, "", "A ConfigMap with a policy, under policy.cfg."),
    Flag("policy-configmap-namespace", STRING, "kube-system", "The namespace of that ConfigMap."),
    Flag("port", INT, 0, "The port without TLS."),
    Flag("scheduler-name", STRING, "", "The name of the one profile."),
    Flag("use-legacy-policy-config", BOOL, False, "Let the file count although there is a ConfigMap."),
)
LEGACY_NAMES: Final = frozenset(flag.name for flag in LEGACY_FLAGS)
"""The names of these flags."""
