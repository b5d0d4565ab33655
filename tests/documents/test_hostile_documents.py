"""Every reader of YAML and JSON from outside, against what no operator writes by intention."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from trio_sched.cli.startup.configuration_files import read_configuration_file
from trio_sched.config.legacy import read_legacy_configuration
from trio_sched.config.load import load_configuration
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.kubeconfig.kubeconfig_file import read_kubeconfig
from trio_sched.simulator import ManifestError, load_manifests

Reader = Callable[[Path], object]


def _configuration(path: Path) -> object:
    text = read_configuration_file(str(path))
    return read_legacy_configuration(text) or load_configuration(text)


READERS: Final[dict[str, Reader]] = {
    "configuration": _configuration,
    "kubeconfig": lambda path: read_kubeconfig(str(path)),
    "manifests": lambda path: load_manifests([path]),
}
LEVELS: Final = 100_000


def _bomb(lines: int, form: str, first: str) -> str:
    return "\n".join([f"a0: &a0 {first}", *(f"a{n}: &a{n} {form.format(f'*a{n - 1}')}" for n in range(1, lines))])


TEN_TIMES: Final = "[" + ", ".join(["{0}"] * 10) + "]"
HOSTILE: Final[dict[str, bytes]] = {
    "open brackets": b"[" * LEVELS,
    "closed brackets": b"[" * LEVELS + b"]" * LEVELS,
    "open braces": b"{a: " * 20_000,
    "JSON objects": b'{"a":' * LEVELS + b"1" + b"}" * LEVELS,
    "JSON arrays in an object": b'{"a":' + b"[" * LEVELS + b"]" * LEVELS + b"}",
    "just too deep": b'{"a":' + b"[" * 260 + b"]" * 260 + b"}",
    "numbers without room": b'{"apiVersion": "v1", "kind": 1e400, "a": -1e999, "b": ' + b"9" * 10_000 + b"}",
    "block sequences": b"- " * LEVELS + b"a",
    "complex keys": b"? " * LEVELS + b"a",
    "aliases of aliases": _bomb(9, TEN_TIMES, "[x, x, x, x, x, x, x, x, x, x]").encode(),
    "merges of merges": _bomb(30, "{{<<: " + TEN_TIMES + "}}", "{{}}".replace("{{}}", "{}")).encode(),
    "merges of merges of a filled mapping": _bomb(30, "{{<<: " + TEN_TIMES + "}}", "{b: 1}").encode(),
    "an anchor in itself": b"a: &a [*a]",
    "an anchor merged into itself": b"a: &a {<<: *a}",
    "an unknown anchor": b"a: *" + b"x" * 50_000,
    "a Python tag on a mapping": b"a: !!python/object/apply:os.system {a: *b}",
    "NUL bytes": b"a: \0",
    "a binary file": bytes(range(256)) * 100,
    "a lone continuation byte": b"a: \x80",
    "half of a UTF-16 character": b"\xff\xfea\0:\0 \0\x00",
    "a megabyte of a key that is none": b"? [" + b"k" * 1_000_000 + b"]\n: 1",
    "a megabyte of kind": b"apiVersion: v1\nkind: " + b"K" * 1_000_000,
    "a megabyte of version": b"apiVersion: " + b"a/" * 500_000 + b"\nkind: Config",
    "a megabyte without a kind": b"a: " + b"b" * 1_000_000,
    "a megabyte of a duplicate key": b"".join([b"k" * 1_000_000 + b": 1\n"] * 2),
    "a megabyte of text": b"x" * 1_000_000,
    "a list": b"[1, 2]",
    "an endless number": b"kind: Node\napiVersion: v1\nmetadata: " + b"9" * 100_000,
    "an endless JSON number": b'{"apiVersion": "v1", "kind": "Node", "metadata": ' + b"9" * 100_000 + b"}",
    "an infinite JSON number": b'{"apiVersion": "v1", "kind": "Node", "metadata": 1e99999}',
    "a null byte as JSON": b'{"a": "\0"}',
    "an unpaired surrogate": b'{"apiVersion": "v1", "kind": "Node", "metadata": "\\ud800"}',
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_documents_are_refused_in_few_words(reader: str, hostile: str, tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(HOSTILE[hostile])
    if reader == "kubeconfig" and hostile in _HARMLESS_KUBECONFIGS:
        READERS[reader](path)
        return
    with pytest.raises(TrioSchedError) as caught:
        READERS[reader](path)
    assert 0 < len(str(caught.value)) < 1_000
    assert "Traceback" not in str(caught.value)


_HARMLESS_KUBECONFIGS: Final = ("a megabyte without a kind",)
"""Unknown fields are ignored there."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_encodings_that_yaml_allows_are_read(reader: str, encoding: str, tmp_path: Path) -> None:
    text = {
        "configuration": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        "kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: ä\n",
        "manifests": "apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {a: ä}}\n",
    }[reader]
    path = tmp_path / "document"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + text).encode(encoding))
    assert READERS[reader](path) is not None


@pytest.mark.parametrize("reader", ["configuration", "manifests"])
def test_a_pipe_is_read_like_a_file(reader: str, tmp_path: Path) -> None:
    text = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    text = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n" if reader == "manifests" else text
    read_end, write_end = os.pipe()
    os.write(write_end, text)
    os.close(write_end)
    assert READERS[reader](Path(f"/dev/fd/{read_end}")) is not None
    os.close(read_end)


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_that_nobody_writes_to_is_given_up(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.documents.files.PIPE_WAIT_SECONDS", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(TrioSchedError, match=r"pipe: .*nothing is written to this pipe"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", ["/dev/zero", "/nonexistent/file", "/", "a\0b"])
def test_what_is_no_file_is_named(reader: str, path: str) -> None:
    with pytest.raises(TrioSchedError) as caught:
        READERS[reader](Path(path))
    if path != "/":
        assert (r"a\x00b" if "\0" in path else path) in str(caught.value)
        assert ("invalid argument" in str(caught.value)) == ("\0" in path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_too_large_is_refused(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        "cli.startup.configuration_files",
        "kube_client.kubeconfig.kubeconfig_file",
        "simulator.manifests.manifest_files",
    ):
        monkeypatch.setattr(f"trio_sched.{module}.MAX_BYTES", 100)
    path = tmp_path / "document"
    path.write_text("# " + "x" * 200)
    with pytest.raises(TrioSchedError, match=r"document: .*larger than 100 bytes"):
        READERS[reader](path)


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n", b"---\n", b"\xef\xbb\xbf"])
def test_an_empty_file_of_manifests_holds_no_object(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(text)
    with pytest.raises(ManifestError, match="holds no object"):
        load_manifests([path])
