"""``--shadow`` and the flags beside it: whose decisions are compared, and what comes of it."""

from __future__ import annotations

from attrs import evolve

from trio_sched.cli.flags.flags import Flags
from trio_sched.config.errors import ConfigError
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.engine.shadow.judgement import JudgementClass
from trio_sched.errors import nearest_name
from trio_sched.go.text import quote, shortened

ALL_PROFILES = "*"
"""What ``--shadow`` means without a value."""


def shadow_settings(flags: Flags, config: SchedulerConfig) -> ShadowSettings | None:
    """What *flags* ask for with *config*; None: no shadow.

    Raises:
        ConfigError: a flag makes no sense, alone or with this configuration; the text names it.
    """
    if "shadow" not in flags.given:
        for name in ("shadow-fail-on", "shadow-report"):
            if name in flags.given:
                raise ConfigError.of(f"--{name} is of use with --shadow only; add --shadow, or leave it out")
        return None
    if flags["record"]:
        raise ConfigError.of("--record records decisions, of which a shadow makes none; leave --record or --shadow out")
    if config.extenders:
        raise ConfigError.of(
            "--shadow compares no decisions that extenders take part in; leave extenders out of --config"
        )
    return ShadowSettings(
        schedulers=_schedulers(flags["shadow"], config),
        fail_on=frozenset(map(_class_named, flags["shadow-fail-on"])),
        report_file=flags["shadow-report"],
    )


def without_election(config: SchedulerConfig) -> SchedulerConfig:
    """*config* for a process that never leads."""
    return evolve(config, leader_election=evolve(config.leader_election, leader_elect=False))


def _schedulers(text: str, config: SchedulerConfig) -> frozenset[str]:
    profiles = [profile.scheduler_name for profile in config.profiles]
    if text == ALL_PROFILES:
        return frozenset(profiles)
    names = text.split(",")
    for name in names:
        if name not in profiles:
            listed = ", ".join(map(quote, profiles))
            problem = f"the configuration has no profile of that schedulerName; it has {shortened(listed)}"
            raise ConfigError.of(f"--shadow={shortened(text)}: {quote(shortened(name))}: {problem}")
    return frozenset(names)


def _class_named(text: str) -> JudgementClass:
    failures = [one for one in JudgementClass if one is not JudgementClass.SAME]
    found = next((one for one in failures if one == text), None)
    if found is None:
        near = nearest_name(text, failures)
        hint = f"; did you mean {near}?" if near else ""
        classes = ", ".join(failures)
        raise ConfigError.of(f"--shadow-fail-on={shortened(text)}: no class of decisions: {classes}{hint}")
    return found
