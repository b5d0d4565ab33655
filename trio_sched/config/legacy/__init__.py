"""Converts configurations that kube-scheduler no longer reads into v1 documents, and lists what changed.

Three kinds: component configurations before v1 (`read_legacy_configuration`), scheduling policies and algorithm
providers (`convert_start`, with the old flags). No file is read and nothing is run: texts come in, a `Conversion` comes
out, and its document is then decoded, completed and validated as every v1 document is.

Source: Kubernetes 1.3 to 1.28, which read these documents.
"""

from trio_sched.config.legacy.configuration import LegacyConfiguration, read_legacy_configuration
from trio_sched.config.legacy.conversion import Conversion
from trio_sched.config.legacy.policy_shape import is_policy
from trio_sched.config.legacy.policy_source import (
    POLICY_KEY,
    PolicyConfigMap,
    PolicyFile,
    PolicySource,
    chosen_policy,
)
from trio_sched.config.legacy.shapes import LEGACY_API_VERSIONS
from trio_sched.config.legacy.start import OldStart, convert_start

__all__ = [
    "LEGACY_API_VERSIONS",
    "POLICY_KEY",
    "Conversion",
    "LegacyConfiguration",
    "OldStart",
    "PolicyConfigMap",
    "PolicyFile",
    "PolicySource",
    "chosen_policy",
    "convert_start",
    "is_policy",
    "read_legacy_configuration",
]
