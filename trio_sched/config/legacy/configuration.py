"""Reads a legacy component configuration, finds the policy that it names, and converts it to v1."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from trio_sched.config.document import interpret, read_document
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.component_profile import draft_profile
from trio_sched.config.legacy.conversion import Conversion, v1_document
from trio_sched.config.legacy.later_profile import later_profile
from trio_sched.config.legacy.policy import policy_into
from trio_sched.config.legacy.policy_source import PolicySource, chosen_policy
from trio_sched.config.legacy.profile_document import write_profile
from trio_sched.config.legacy.profile_draft import ProfileDraft
from trio_sched.config.legacy.provider import provider_into
from trio_sched.config.legacy.retired_plugins import VERSIONS
from trio_sched.config.legacy.settings import general_settings
from trio_sched.config.legacy.shapes import SHAPES
from trio_sched.config.legacy.values import decode_whole, values_of
from trio_sched.config.wire_types import API_VERSION, CONFIGURATION_KIND

_DEFAULT_NAME: Final = "default-scheduler"


@frozen
class LegacyConfiguration:
    """A component configuration of a version that kube-scheduler no longer reads."""

    api_version: str
    _given: Mapping[str, Any]
    _values: Mapping[str, Any]

    @property
    def policy_source(self) -> PolicySource | None:
        """Where its policy is; None if it names none."""
        policy = self._given.get("algorithmSource", {}).get("policy", {})
        config_map = policy.get("configMap", {})
        return chosen_policy(
            path=policy.get("file", {}).get("path") or self._given.get("policyConfigFile", ""),
            config_map=config_map.get("name") or self._given.get("policyConfigMap", ""),
            namespace=config_map.get("namespace") or self._given.get("policyConfigMapNamespace") or "kube-system",
            file_first=self._given.get("useLegacyPolicyConfig", False),
        )

    @property
    def kubeconfig(self) -> str:
        """The path of its kubeconfig; empty if it names none."""
        path: str = self._given.get("clientConnection", {}).get("kubeconfig", "")
        return path

    @property
    def _version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def convert(self, policy: str | None = None) -> Conversion:
        """Convert it.

        Args:
            policy: the text of the policy at `policy_source`, if there is one.

        Raises:
            ConfigError: something in it cannot be converted.
        """
        changes = Changes()
        changes.note("apiVersion", f"now {API_VERSION}")
        fields = general_settings(self._given, self._values, self._version, changes)
        if VERSIONS.index(self._version) < VERSIONS.index("v1beta3"):
            drafts, extenders = self._drafts(policy, changes)
            profiles = [write_profile(draft) for draft in drafts]
            if any("enabled" in profile.get("plugins", {}).get("multiPoint", {}) for profile in profiles):
                changes.note("profiles", "plugins keep the weights that they had by default; v1 has greater ones")
            fields["extenders"] = extenders or fields.get("extenders")
        else:
            given = zip(self._given.get("profiles") or (), self._values.get("profiles") or (), strict=True)
            profiles = [
                later_profile(profile or {}, values or {}, changes, f"profiles[{index}]")
                for index, (profile, values) in enumerate(given)
            ]
        if len(profiles) == 1 and profiles[0].get("schedulerName") == _DEFAULT_NAME:
            del profiles[0]["schedulerName"]
        fields["profiles"] = profiles if any(profiles) else []
        changes.raise_problems(self.api_version)
        return Conversion(source=self.api_version, document=v1_document(fields), notes=tuple(changes.notes))

    def _drafts(self, policy: str | None, changes: Changes) -> tuple[list[ProfileDraft], list[dict[str, Any]]]:
        """The profiles, and the extenders of the policy if there is one."""
        given = self._given
        if "profiles" in SHAPES[self.api_version].fields:
            drafts = [
                draft_profile(profile or {}, self._version, changes, path=f"profiles[{index}].")
                for index, profile in enumerate(given.get("profiles") or [{}])
            ]
        else:
            drafts = [draft_profile(given, self._version, changes, path="")]
            for field in ("schedulerName", "plugins", "pluginConfig"):
                if field in given:
                    changes.note(field, f"now profiles[0].{field}")
        if (weight := given.get("hardPodAffinitySymmetricWeight")) is not None:
            changes.note("hardPodAffinitySymmetricWeight", "now hardPodAffinityWeight of InterPodAffinityArgs")
            for draft in drafts:
                draft.arguments_of("InterPodAffinity")["hardPodAffinityWeight"] = weight
        extenders = self._apply_algorithm(drafts, policy, changes)
        if (seconds := given.get("bindTimeoutSeconds")) is not None:
            changes.note("bindTimeoutSeconds", "now bindTimeoutSeconds of VolumeBindingArgs")
            for draft in drafts:
                draft.arguments_of("VolumeBinding")["bindTimeoutSeconds"] = seconds
        if given.get("disablePreemption"):
            changes.note("disablePreemption", "now DefaultPreemption, switched off")
            for draft in drafts:
                for point in ("postFilter", "preEnqueue"):
                    draft.points.get(point, {}).pop("DefaultPreemption", None)
        return drafts, extenders

    def _apply_algorithm(
        self, drafts: list[ProfileDraft], policy: str | None, changes: Changes
    ) -> list[dict[str, Any]]:
        """Apply the policy or the algorithm provider that the document names, if it names one."""
        source = self._given.get("algorithmSource", {})
        provider = source.get("provider") or self._given.get("algorithmProvider", "")
        if provider and "policy" in source:
            changes.refuse("algorithmSource", "has both a policy and a provider; leave one of the two out")
        if "policy" in source and self.policy_source is None:
            changes.refuse("algorithmSource.policy", "names neither a file nor a ConfigMap")
        if not provider and policy is None:
            return []
        if any("plugins" in profile for profile in self._given.get("profiles") or (self._given,)):
            if policy is None and provider == "DefaultProvider":
                return []
            changes.refuse("algorithmSource", "says what runs, and so do plugins; leave one of the two out")
            return []
        for draft in drafts:
            draft.points.clear()
        if policy is None:
            path = "algorithmSource.provider" if "provider" in source else "algorithmProvider"
            for draft in drafts:
                provider_into(draft, provider, changes, path)
            return []
        return policy_into(drafts, policy, changes)


def read_legacy_configuration(text: str) -> LegacyConfiguration | None:
    """The component configuration in *text* if it is of a legacy version; None for every other text.

    Raises:
        ConfigError: it is of a legacy version, and malformed.
    """
    try:
        tree, duplicates = read_document(text)
        kind = interpret(tree)
    except ConfigError:
        return None
    if kind.kind != CONFIGURATION_KIND or kind.api_version not in SHAPES:
        return None
    given = decode_whole(tree, SHAPES[kind.api_version], duplicates=duplicates)
    return LegacyConfiguration(kind.api_version, given, values_of(tree))
