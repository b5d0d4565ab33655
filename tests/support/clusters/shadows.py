"""Shadows beside the schedulers of virtual clusters, and the requests that they send."""

from random import Random
from typing import Any

from attrs import define, evolve, field

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.embedded import EmbeddedCaller
from trio_sched.engine.shadow.judgement import Judgement, JudgementClass, Judgements
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.simulator import ExtenderTransport
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.cluster_settings import cluster_settings
from trio_sched.testing.scheduler_process import SchedulerProcess, SeverableTransport


@define(eq=False)
class CountingCaller(EmbeddedCaller):
    """Notes the requests that are sent."""

    sent: list[tuple[str, str]] = field(factory=list)
    """Method and target of each."""

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        self.sent.append((method.decode(), target.decode()))
        return await EmbeddedCaller.request(self, method, target, headers, body)


@define(eq=False)
class Shadow:
    """A running shadow, and what it has compared."""

    process: SchedulerProcess
    caller: CountingCaller

    @property
    def judgements(self) -> Judgements:
        assert self.process.assembly is not None
        assert self.process.assembly.shadow is not None
        return self.process.assembly.shadow.judgements

    @property
    def last(self) -> Judgement:
        """The last decision that is not the same."""
        return self.judgements.listed[-1]

    def classes(self) -> dict[str, int]:
        """How many decisions are of each class; those of none are left out."""
        counts = {str(one): self.judgements.count([one]) for one in JudgementClass}
        return {name: count for name, count in counts.items() if count}


async def start_shadow(cluster: VirtualCluster, config: str | None = None, *, plugins: Any = ()) -> Shadow:
    """A shadow with the text of a configuration; None: the default one."""
    settings = cluster_settings(config, FeatureGates(), list(plugins), False)
    shadow = ShadowSettings(schedulers=frozenset(["default-scheduler"]))
    process = SchedulerProcess(
        evolve(settings, identity="shadow", shadow=shadow),
        cluster.api,
        SeverableTransport(ExtenderTransport(())),
        Random(0),
        cluster.api.now,
    )
    to_api = process._to_api
    caller = process._to_api = CountingCaller(to_api.server, to_api.name, to_api.request_seconds)
    cluster._nursery.start_soon(process.run)
    await process.wait_started()
    return Shadow(process, caller)
