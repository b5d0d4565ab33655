"""What the algorithm providers were: the default plugins, scored in one of two ways."""

from typing import Final

from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.component_profile import draft_profile
from trio_sched.config.legacy.profile_draft import ProfileDraft
from trio_sched.config.legacy.resource_strategy import FIT

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"


def provider_into(draft: ProfileDraft, provider: str, changes: Changes, path: str) -> None:
    """Apply *provider* to *draft*.

    Args:
        draft: the profile.
        provider: the name of an algorithm provider.
        changes: where the changes are noted.
        path: where the document or the command line names it.
    """
    if provider not in (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER):
        why = f"there is no algorithm provider {provider!r}; there were {DEFAULT_PROVIDER} and {AUTOSCALER_PROVIDER}"
        changes.refuse(path, why)
        return
    standard = draft_profile({}, "v1alpha1", Changes(), path="")
    for point, plugins in standard.points.items():
        for plugin, weight in plugins.items():
            draft.enable(point, plugin, weight)
    changes.note(path, f"{provider} is a profile with the weights of its time now")
    if provider == AUTOSCALER_PROVIDER:
        draft.arguments_of(FIT)["scoringStrategy"] = {"type": "MostAllocated"}
        changes.note(path, f"it prefers full nodes by scoringStrategy.type MostAllocated of {FIT}Args")
