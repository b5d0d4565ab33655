from hypothesis import given
from hypothesis import strategies as st

from trio_sched.config.expansion import expand_profiles
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy.conversion import Conversion, v1_document
from trio_sched.config.legacy.profile_document import write_profile
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS, ProfileDraft
from trio_sched.config.load import load_configuration
from trio_sched.config.wire_types import POINTS

GATED = {"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
DEFAULTS = [name for name in KNOWN_PLUGINS if name not in GATED and name not in NEWER_PLUGINS]
WRITTEN = [point for point in POINTS if point not in ("multiPoint", "placementGenerate", "placementScore")]
OTHERS = ("Mine", "Yours")
POINTS_OF = {**KNOWN_PLUGINS, **dict.fromkeys(OTHERS, frozenset(POINTS.values()) - {"multi_point"})}


@st.composite
def drafts(draw: st.DrawFn) -> ProfileDraft:
    draft = ProfileDraft("some-scheduler")
    for point in WRITTEN:
        possible = [name for name in DEFAULTS if POINTS[point] in KNOWN_PLUGINS[name]]
        if point == "queueSort":
            names = [draw(st.sampled_from([*possible, *OTHERS]))]
        else:
            in_tree = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
            names = [*in_tree, *draw(st.lists(st.sampled_from(OTHERS), unique=True))]
        for name in [*names, *(["DefaultBinder"] if point == "bind" and not names else [])]:
            draft.enable(point, name, draw(st.integers(0, 100)) if point == "score" else 0)
    return draft


@given(drafts())
def test_what_is_written_runs_exactly_what_the_draft_says_besides_what_is_newer(draft: ProfileDraft) -> None:
    document = v1_document({"profiles": [write_profile(draft)]})
    config = load_configuration(Conversion(source="", document=document, notes=()).text())
    assert config.profiles[0].scheduler_name == "some-scheduler"
    (expanded,) = expand_profiles(config.profiles, POINTS_OF)
    for point in WRITTEN:
        wanted = draft.points.get(point, {})
        got = {ref.name: ref.weight for ref in expanded[POINTS[point]] if ref.name not in NEWER_PLUGINS}
        if point == "score":  # scores are added up: their order means nothing
            assert got == {name: weight or 1 for name, weight in wanted.items()}
        else:
            assert list(got) == list(wanted)
        newer = {ref.name for ref in expanded[POINTS[point]]} & set(NEWER_PLUGINS)
        assert newer == {name for name in NEWER_PLUGINS if POINTS[point] in KNOWN_PLUGINS[name]}


def test_what_runs_by_default_is_not_said() -> None:
    draft = ProfileDraft()
    for point in WRITTEN:
        for name in DEFAULTS:
            if POINTS[point] in KNOWN_PLUGINS[name]:
                weight = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
                draft.enable(point, name, weight.get(name, 1))
    assert write_profile(draft) == {}
