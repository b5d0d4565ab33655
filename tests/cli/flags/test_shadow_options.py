import pytest

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.flags.shadow_options import shadow_settings
from trio_sched.config.errors import ConfigError
from trio_sched.config.load import load_configuration
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.engine.shadow.judgement import JudgementClass

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PROFILES = "profiles: [{schedulerName: one}, {schedulerName: two}]\n"
EXTENDERS = "extenders: [{urlPrefix: http://extender.test, filterVerb: filter}]\n"


def settings(*argv: str, config: str = PROFILES) -> ShadowSettings | None:
    return shadow_settings(parse_flags(argv), load_configuration(HEAD + config))


def test_without_the_flag_there_is_no_shadow() -> None:
    assert settings() is None


def test_without_a_value_it_is_for_all_profiles() -> None:
    found = settings("--shadow")
    assert found is not None
    assert (found.schedulers, found.fail_on, found.report_file) == ({"one", "two"}, frozenset(), "")


def test_names_classes_and_a_file_are_taken() -> None:
    found = settings("--shadow=two", "--shadow-fail-on=differs,stale", "--shadow-report=r.json")
    assert found is not None
    assert found.schedulers == {"two"}
    assert found.fail_on == {JudgementClass.DIFFERS, JudgementClass.STALE}
    assert found.report_file == "r.json"


@pytest.mark.parametrize(
    ("argv", "config", "problem"),
    [
        (
            ["--shadow=three"],
            PROFILES,
            '--shadow=three: "three": the configuration has no profile of that schedulerName; it has "one", "two"',
        ),
        (["--shadow=one,"], PROFILES, '--shadow=one,: "": the configuration has no profile of that schedulerName'),
        (
            ["--shadow", "--shadow-fail-on=diffres"],
            PROFILES,
            "--shadow-fail-on=diffres: no class of decisions: tie, sampling, stale, differs, unjudged; "
            "did you mean differs?",
        ),
        (["--shadow", "--shadow-fail-on=same"], PROFILES, "--shadow-fail-on=same: no class of decisions"),
        (["--shadow-fail-on=differs"], PROFILES, "--shadow-fail-on is of use with --shadow only"),
        (["--shadow-report=f"], PROFILES, "--shadow-report is of use with --shadow only"),
        (["--shadow", "--record=x"], PROFILES, "--record records decisions, of which a shadow makes none"),
        (["--shadow"], EXTENDERS, "--shadow compares no decisions that extenders take part in"),
    ],
)
def test_nonsense_is_refused(argv: list[str], config: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(*argv, config=config)
    assert str(raised.value).startswith(problem)
