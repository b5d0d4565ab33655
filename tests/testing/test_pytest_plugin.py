"""Async tests of plugins run in virtual time without configuration, and no other test notices the plugin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KIT_TEST = """
    import trio
    from trio_sched.testing import node, pod, virtual_cluster

    async def test_an_hour_passes_in_an_instant():
        async with virtual_cluster(nodes=[node("n")]) as cluster:
            await cluster.create(pod("p"))
            assert await cluster.wait_scheduled("p") == "n"
            await trio.sleep(3600)
"""


def run(folder: Path, code: str, *options: str, **files: str) -> str:
    """What a run of pytest on *code* prints that has no other plugins than those in *options*."""
    for name, text in {"test_it": code, **files}.items():
        lines = text.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        (folder / f"{name}.py").write_text("\n".join(line[indent:] for line in lines))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "trio_sched.pytest_plugin", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def test_without_configuration_tests_have_clusters_fixtures_parameters_and_examples(tmp_path: Path) -> None:
    code = """
        import pytest, trio
        from hypothesis import given, settings, strategies as st
        from trio_sched.testing import pod

        @pytest.fixture
        def seven():
            return 7

        @pytest.mark.parametrize("count", [1, 2])
        async def test_fixtures(virtual_cluster, fake_handle, seven, count):
            assert (fake_handle.now(), seven) == (0.0, 7)
            async with virtual_cluster(nodes=count) as cluster:
                assert len(cluster.placements()) == 0

        @settings(max_examples=5, deadline=None)
        @given(st.integers(0, 9999))
        async def test_examples(seconds):
            await trio.sleep(seconds)

        async def test_a_failure_is_one():
            await trio.sleep(1)
            assert pod("a").name == "b"
    """
    output = run(tmp_path, code, test_kit=KIT_TEST)
    assert "1 failed, 4 passed" in output
    assert "AssertionError: assert 'a' == 'b'" in output


def test_pytest_trio_keeps_its_tests_and_they_get_the_clock(tmp_path: Path) -> None:
    code = """
        import pytest, trio
        from trio.testing import MockClock
        from trio_sched.testing import virtual_cluster

        @pytest.mark.trio
        async def test_with_cluster():
            async with virtual_cluster(nodes=1) as cluster:
                await trio.sleep(3600)

        @pytest.mark.trio
        async def test_with_a_clock_of_its_own(mock_clock):
            mock_clock.autojump_threshold = 0
            async with virtual_cluster(nodes=1) as cluster:
                await cluster.settle()
                assert mock_clock.current_time() > 60

        @pytest.fixture
        async def resource():
            yield 3

        @pytest.mark.trio
        async def test_without_cluster(resource):
            assert resource == 3
            assert not isinstance(trio.lowlevel.current_clock(), MockClock)
    """
    assert "3 passed" in run(tmp_path, code, "-p", "pytest_trio.plugin")


def test_in_the_mode_of_pytest_trio_for_all_tests_they_get_the_clock_too(tmp_path: Path) -> None:
    code = """
        import trio
        from trio_sched.testing import virtual_cluster

        async def test_with_cluster():
            async with virtual_cluster(nodes=1) as cluster:
                await trio.sleep(3600)

        def small_cluster():
            return virtual_cluster(nodes=1)

        async def test_with_a_function_that_makes_the_cluster():
            async with small_cluster() as cluster:
                await trio.sleep(3600)
    """
    assert "2 passed" in run(tmp_path, code, "-p", "pytest_trio.plugin", "-o", "trio_mode=true")


def test_tests_of_other_plugins_are_left_alone(tmp_path: Path) -> None:
    code = """
        import pytest, sniffio
        from trio_sched.testing import pod

        @pytest.mark.anyio
        async def test_of_anyio():
            assert sniffio.current_async_library() == "asyncio"
    """
    conftest = """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"
    """
    assert "1 passed" in run(tmp_path, code, "-p", "anyio.pytest_plugin", conftest=conftest)


def test_async_tests_of_other_projects_fail_as_before(tmp_path: Path) -> None:
    output = run(tmp_path, "async def test_nobody_runs_it(): pass")
    assert "async def functions are not natively supported" in output


def test_a_run_without_it_imports_nothing(tmp_path: Path) -> None:
    code = """
        import sys

        def test_what_is_imported():
            found = {name for name in sys.modules if name.startswith(("trio_sched", "numpy", "msgspec", "attrs"))}
            assert found == {"trio_sched", "trio_sched.pytest_plugin"}
    """
    assert "1 passed" in run(tmp_path, code)


LOOPING = """
    import itertools, threading
    from trio_sched.plugin_api import hookimpl
    from trio_sched.testing import node, pod, schedule

    class Loops:
        name = "Loops"
        def __init__(self, args, handle): pass

        @hookimpl
        def filter_node(self, pod, node):
            LOOP

    def decide():
        schedule(pod("p"), on=[node("n")], plugins=[Loops])

    def in_a_thread(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    def test_it():
        DECIDE

    def test_another(): ...
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["one process", "xdist"])
def test_a_hook_that_loops_fails_its_test_after_the_time_in_the_configuration(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nplugin_hook_seconds = 0.3\n")
    code = LOOPING.replace("LOOP", "while True: pass").replace("DECIDE", "decide()")
    output = run(tmp_path, code, *options)
    assert "1 failed, 1 passed" in output
    assert "HookNeverReturned: plugin Loops: filter_node had not returned after 0.3 s" in output
    assert "test_it.py, line 11, in filter_node" in output


@pytest.mark.parametrize(
    ("loop", "text"),
    [
        ("threading.Event().wait()", "It cannot be interrupted, so the process of the tests ends."),
        ("sum(itertools.repeat(0))", "Timeout (0:00:00.9"),
    ],
    ids=["waits", "computes in C"],
)
def test_a_hook_that_cannot_be_interrupted_ends_the_process_with_its_stack(
    tmp_path: Path, loop: str, text: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nplugin_hook_seconds = 0.3\n")
    output = run(tmp_path, LOOPING.replace("LOOP", loop).replace("DECIDE", "in_a_thread(decide)"))
    assert text in output
    assert "in filter_node" in output
    assert "passed" not in output


def test_a_limit_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nplugin_hook_seconds = soon\n")
    assert "plugin_hook_seconds = soon: must be a number of seconds above 0, or inf" in run(tmp_path, KIT_TEST)
