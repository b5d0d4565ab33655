"""Reads the file that ``--allow-metric-labels-manifest`` names."""

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import decode_text, read_bytes
from trio_sched.documents.plain import read_plain
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import quote, shortened
from trio_sched.kube_client.files import UNREADABLE, describe_open_error


class ManifestError(TrioSchedError):
    """The file cannot be read, or is no mapping of texts to texts."""


def read_label_manifest(path: str) -> dict[str, str]:
    """Which values a label may have: ``metric,label`` to ``value,value``.

    Raises:
        ManifestError: naming what is wrong.
    """
    try:
        content = read_bytes(path)
    except UNREADABLE as error:
        raise ManifestError(f"failed to read allow list manifest: {describe_open_error(path, error)}") from error
    try:
        document = next(read_plain(decode_text(content)), None)
    except DocumentError as error:
        raise _malformed(str(error)) from error
    labels = {} if document is None or document.value is None else document.value
    if not isinstance(labels, dict):
        raise _malformed("it is no mapping of metricName,labelName to the allowed values")
    for key, value in labels.items():
        if not isinstance(value, str | None):
            raise _malformed(f"the value of {quote(shortened(key))} is no text")
    return {key: value or "" for key, value in labels.items()}


def _malformed(what: str) -> ManifestError:
    return ManifestError(f"failed to parse allow list manifest: {what}")
