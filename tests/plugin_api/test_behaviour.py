from attrs import fields

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.plugin_api.behaviour import Behaviour, behaviour_at
from trio_sched.testing import FakeHandle


def test_versions_without_an_entry_behave_as_the_one_before() -> None:
    assert behaviour_at((1, 33)) is behaviour_at((1, 36))
    assert behaviour_at((1, 38)) is behaviour_at((1, 37))


def test_every_difference_is_one_between_the_versions() -> None:
    old, new = behaviour_at((1, 36)), behaviour_at((1, 37))
    assert not [one.name for one in fields(Behaviour) if getattr(old, one.name) == getattr(new, one.name)]
    assert not [name for name in (one.name for one in fields(Behaviour)) if getattr(old, name)]


def test_plugins_and_daemon_see_that_of_the_emulated_version() -> None:
    assert Behaviour.of(FakeHandle()) is FeatureGates().behaviour is behaviour_at((1, 36))
    assert (
        Behaviour.of(FakeHandle(emulated_version=(1, 37))) is FeatureGates((1, 37)).behaviour is behaviour_at((1, 37))
    )
