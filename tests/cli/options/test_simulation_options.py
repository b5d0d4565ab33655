"""The settings of simulations: what of a configuration is left out there."""

from pathlib import Path

from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection


def test_one_scheduler_decides_also_where_replicas_share_the_work(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nsharding: {shards: 4}\n"
    )
    config = settings_of(file, "", PluginSelection()).config
    assert config.sharding is None
    assert not config.leader_election.leader_elect
