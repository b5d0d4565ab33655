import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.config.dump import dump_configuration, write_yaml
from trio_sched.config.errors import ConfigError
from trio_sched.config.extenders import apply_extenders
from trio_sched.config.load import load_configuration
from trio_sched.documents.tree import Number, plain
from trio_sched.documents.yaml_reader import read_yaml

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_dumped_configuration_completes_to_itself() -> None:
    config = load_configuration(
        HEAD + "clientConnection: {qps: 0.1}\nleaderElection: {resourceName: 'yes'}\nprofiles:\n"
        "- schedulerName: a\n  percentageOfNodesToScore: 5\n  pluginConfig:\n"
        "  - {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints:"
        " [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [k]}]}}\n"
        "- {schedulerName: b}\n"
        "extenders: [{urlPrefix: http://x, tlsConfig: {caData: Zm9v}, managedResources: [{name: a.b/c}]}]\n"
    )
    text = dump_configuration(config)
    assert dump_configuration(load_configuration(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [], "c": {}}, "a: []\nb: 1\nc: {}\n"),
        ({"a10": 1, "a9": 2, "a_": 3, "ab": 4, "A": 5}, "A: 5\na_: 3\na9: 2\na10: 1\nab: 4\n"),
        (["yes", "5", "", "a: b", "~", "2001-01-01", "1:30", "=", "x"], None),
        ({"a": "b\nc\n"}, "a: |\n  b\n  c\n"),
        ([Number("1e2"), Number("1e21"), Number("7")], "- 100\n- 1e+21\n- 7\n"),
        ({"a": "b\n\n\n"}, "a: |+\n  b\n\n\n"),
        ({"a": "\n"}, "a: |2+\n\n"),
        ({"a": "b..."}, "a: b...\n"),
        ({"a": None, "b": True}, "a: null\nb: true\n"),
    ],
)
def test_values_are_laid_out_as_kube_scheduler_lays_them_out(value: object, text: str | None) -> None:
    written = write_yaml(value)
    assert written == (text or '- "yes"\n- "5"\n- ""\n- \'a: b\'\n- "~"\n- "2001-01-01"\n- "1:30"\n- =\n- x\n')


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"])))
def test_any_text_survives_being_written(text: str) -> None:
    # Read with our own reader: PyYAML's takes a lone "=" for something else, kube-scheduler's library does not.
    assert plain(read_yaml(write_yaml({"a": text})).tree) == {"a": text}


@given(st.lists(st.text(st.sampled_from(" \n\ta:#-.'\"|>\r\x00\x85\u2028\ufeff😀"))))
def test_any_layout_of_lines_survives_being_written(texts: list[str]) -> None:
    written = write_yaml({"a": texts})
    assert plain(read_yaml(written).tree) == {"a": texts}
    assert "\n..." not in written.removesuffix("\n")[-4:]


def test_settled_extenders_have_a_timeout_and_free_fit_of_their_resources() -> None:
    extender = "{urlPrefix: http://x, managedResources: [{name: a.b/c, ignoredByScheduler: true}]}"
    config = apply_extenders(
        load_configuration(
            f"{HEAD}extenders: [{extender}]\n"
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [d.e/f]}}]}]\n"
        )
    )
    completed = yaml.safe_load(dump_configuration(config))
    assert completed["extenders"][0]["httpTimeout"] == "5s"
    (fit,) = (c for c in completed["profiles"][0]["pluginConfig"] if c["name"] == "NodeResourcesFit")
    assert fit["args"]["ignoredResources"] == ["a.b/c"]


def test_extenders_cannot_free_a_fit_that_is_not_there() -> None:
    config = load_configuration(
        f"{HEAD}profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n"
        "extenders: [{managedResources: [{name: a.b/c, ignoredByScheduler: true}]}]\n"
    )
    with pytest.raises(ConfigError, match="can't find NodeResourcesFitArgs in plugin config"):
        apply_extenders(config)
