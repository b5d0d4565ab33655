"""Every flag of kube-scheduler 1.36, section by section, and the few that it does not have."""

import re
import textwrap
from typing import Final

from trio_sched.cli.flags.go_flags import (
    BOOL,
    DURATION,
    FLOAT32,
    INT,
    INT32,
    INT32S,
    IP,
    LEVEL,
    MAPPING,
    NAMED_CERT_KEY,
    PATTERNS,
    QUANTITY,
    SETTINGS,
    STRING,
    STRINGS,
    Flag,
    FlagType,
    ValueProblem,
    parse_bool,
)
from trio_sched.cli.flags.version import KUBERNETES
from trio_sched.go.text import quote
from trio_sched.objects.timestamps import SECOND_NS

_NARROWEST: Final = 24
"""Characters for the help of a flag, beside its name, below which lines are not broken."""
_VERSION: Final = re.compile(r"v([0-9]+\.[0-9]+\.[0-9]+)(?:[-+].*)?", re.ASCII)


def _version(text: str) -> str:
    """``raw``, a version to report, or whether to print the version; empty for no."""
    if text == "raw":
        return text
    if text.startswith("v") and (match := _VERSION.fullmatch(text)):
        if match.group(1) != KUBERNETES.removeprefix("v"):
            default = quote(KUBERNETES)
            raise ValueProblem(f"version {quote(text)} must match major/minor/patch of default version {default}")
        return text
    return "true" if parse_bool(text) else ""


_VERSION_TYPE: Final = FlagType("version[=true]", _version, lambda text: text or "false", alone="true")

_SHADOW_TYPE: Final = FlagType("string[=*]", str, alone="*")

SECTIONS: Final[dict[str, tuple[Flag, ...]]] = {
    "Misc": (
        Flag("config", STRING, "", "The path to the configuration file."),
        Flag("master", STRING, "", "The address of the API server; it wins over the one in the kubeconfig."),
        Flag("write-config-to", STRING, "", "Write the effective configuration to this file and exit."),
    ),
    "Secure serving": (
        Flag("bind-address", IP, "0.0.0.0", "The address to serve HTTPS on; unspecified means all of them."),
        Flag("cert-dir", STRING, "", "Where the serving certificate is kept; empty keeps a self-signed one in memory."),
        Flag("disable-http2-serving", BOOL, False, "Serve HTTP/1.1 only."),
        Flag("http2-max-streams-per-connection", INT, 0, "How many HTTP/2 streams a connection may have; 0: default."),
        Flag("permit-address-sharing", BOOL, False, "Bind with SO_REUSEADDR."),
        Flag("permit-port-sharing", BOOL, False, "Bind with SO_REUSEPORT."),
        Flag("secure-port", INT, 10259, "The port to serve HTTPS on; 0 serves nothing."),
        Flag("tls-cert-file", STRING, "", "The serving certificate, followed by its issuers."),
        Flag("tls-cipher-suites", STRINGS, (), "The cipher suites to offer."),
        Flag("tls-curve-preferences", INT32S, (), "The key exchange mechanisms to offer, by number."),
        Flag("tls-min-version", STRING, "", "The oldest TLS version to accept: VersionTLS10 to VersionTLS13."),
        Flag("tls-private-key-file", STRING, "", "The private key of --tls-cert-file."),
        Flag("tls-sni-cert-key", NAMED_CERT_KEY, (), "A certificate and key for the names of some domains."),
    ),
    "Authentication": (
        Flag("authentication-kubeconfig", STRING, "", "The kubeconfig to review tokens with."),
        Flag("authentication-skip-lookup", BOOL, False, "Do not look up authentication settings in the cluster."),
        Flag("authentication-token-webhook-cache-ttl", DURATION, 10 * SECOND_NS, "How long a token review counts."),
        Flag("authentication-tolerate-lookup-failure", BOOL, True, "Start even if the look-up in the cluster fails."),
        Flag("client-ca-file", STRING, "", "Who may sign client certificates."),
        Flag("requestheader-allowed-names", STRINGS, (), "Names that a front proxy's certificate may bear."),
        Flag("requestheader-client-ca-file", STRING, "", "Who may sign a front proxy's certificate."),
        Flag("requestheader-extra-headers-prefix", STRINGS, ("x-remote-extra-",), "Prefixes of headers with extras."),
        Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers with the groups of the user."),
        Flag("requestheader-uid-headers", STRINGS, (), "Headers with the UID of the user."),
        Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers with the name of the user."),
    ),
    "Authorization": (
        Flag(
            "authorization-always-allow-paths",
            STRINGS,
            ("/healthz", "/readyz", "/livez"),
            "Paths that everybody may read.",
        ),
        Flag("authorization-kubeconfig", STRING, "", "The kubeconfig to review access with."),
        Flag("authorization-webhook-cache-authorized-ttl", DURATION, 10 * SECOND_NS, "How long a permission counts."),
        Flag("authorization-webhook-cache-unauthorized-ttl", DURATION, 10 * SECOND_NS, "How long a refusal counts."),
    ),
    "Deprecated": (
        Flag("contention-profiling", BOOL, True, "DEPRECATED: profile lock contention. Ignored with --config."),
        Flag("kube-api-burst", INT32, 100, "DEPRECATED: burst of requests. Ignored with --config."),
        Flag(
            "kube-api-content-type",
            STRING,
            "application/vnd.kubernetes.protobuf",
            "DEPRECATED: content type of requests. Ignored with --config.",
        ),
        Flag("kube-api-qps", FLOAT32, 50.0, "DEPRECATED: requests per second. Ignored with --config."),
        Flag("kubeconfig", STRING, "", "DEPRECATED: how to reach the cluster. Ignored with --config."),
        Flag(
            "pod-max-in-unschedulable-pods-duration",
            DURATION,
            300 * SECOND_NS,
            "DEPRECATED: after how long an unschedulable pod is tried again in any case.",
        ),
        Flag("profiling", BOOL, True, "DEPRECATED: serve profiles. Ignored with --config."),
    ),
    "Leader election": (
        Flag("leader-elect", BOOL, True, "Let one of several instances schedule."),
        Flag("leader-elect-lease-duration", DURATION, 15 * SECOND_NS, "How long others wait for a silent leader."),
        Flag("leader-elect-renew-deadline", DURATION, 10 * SECOND_NS, "How long the leader tries to stay it."),
        Flag("leader-elect-resource-lock", STRING, "leases", "The kind of object to lock: leases."),
        Flag("leader-elect-resource-name", STRING, "kube-scheduler", "The name of that object."),
        Flag("leader-elect-resource-namespace", STRING, "kube-system", "The namespace of that object."),
        Flag("leader-elect-retry-period", DURATION, 2 * SECOND_NS, "How long to wait between attempts."),
    ),
    "Feature gate": (
        Flag(
            "emulated-version",
            STRINGS,
            (),
            "The version to act as: [kube=]1.33..1.37, by default that of the API server, 1.36 or 1.37.",
        ),
        Flag("feature-gates", SETTINGS, (), "Features to switch: [kube:]Name=true|false,... Options are:"),
        Flag("min-compatibility-version", STRINGS, (), "The oldest version to get along with: [kube=]1.33..1.37."),
    ),
    "Metrics": (
        Flag("allow-metric-labels", MAPPING, {}, "Which values a label may have: metric,label='v1,v2'."),
        Flag("allow-metric-labels-manifest", STRING, "", "A file with the same."),
        Flag("disabled-metrics", STRINGS, (), "Metrics not to have, by their full names."),
        Flag("show-hidden-metrics-for-version", STRING, "", "Show metrics hidden since this version (the last one)."),
    ),
    "Logs": (
        Flag("log-flush-frequency", DURATION, 5 * SECOND_NS, "How often logs are flushed."),
        Flag("log-json-info-buffer-size", QUANTITY, 0, "[Alpha] How much of the info stream to buffer (json)."),
        Flag("log-json-split-stream", BOOL, False, "[Alpha] Errors to stderr, the rest to stdout (json)."),
        Flag("log-text-info-buffer-size", QUANTITY, 0, "[Alpha] How much of the info stream to buffer (text)."),
        Flag("log-text-split-stream", BOOL, False, "[Alpha] Errors to stderr, the rest to stdout (text)."),
        Flag("logging-format", STRING, "text", "How to log: text or json."),
        Flag("v", LEVEL, 0, "How much to log.", shorthand="v"),
        Flag("vmodule", PATTERNS, (), "How much to log per file: pattern=N,... (text only)."),
    ),
    "Global": (
        Flag("help", BOOL, False, "Print this and exit.", shorthand="h"),
        Flag("version", _VERSION_TYPE, "", "Print the version and exit; =raw prints more; =vX.Y.Z reports another."),
    ),
}
"""The flags of kube-scheduler by section, in the order in which ``--help`` shows them."""


OWN_SECTIONS: Final[dict[str, tuple[Flag, ...]]] = {
    "Plugins": (
        Flag("allow-plugins", STRINGS, (), "Import no plugins of other packages but these names or distributions."),
        Flag(
            "deny-plugins", STRINGS, (), "Do not import plugins of these names or distributions; * stands for any text."
        ),
        Flag("plugin", STRINGS, (), "Files that define plugins, as if they were installed; reloaded when saved."),
        Flag(
            "plugin-blocking-budget",
            DURATION,
            SECOND_NS // 10,
            "How long a hook may let nothing else run before a warning names it, and where it stood.",
        ),
        Flag(
            "plugin-failure-policy",
            STRINGS,
            (),
            "What becomes of pods when a plugin fails: NAME=closed, open, or skip:N to go on without it after N times.",
        ),
        Flag("plugins-dir", STRINGS, (), "Folders with such files; those beginning with _ are helpers of the others."),
        Flag(
            "trace-plugins",
            STRING,
            "",
            "Log calls of plugins and their answers for pods like namespace/name* or app=web; +hint, +sign: those too.",
        ),
    ),
    "Recording": (
        Flag(
            "record", STRING, "", "Record what decisions depend on, and these, into this folder, for trio-sched replay."
        ),
        Flag(
            "record-annotations",
            STRINGS,
            (),
            "Annotations that plugins read, to be recorded as those of built-in ones are; * at the end: any text.",
        ),
        Flag(
            "record-hash-names",
            BOOL,
            False,
            "Record hashes, by a key that is nowhere kept, in place of names of objects, labels' values and images.",
        ),
        Flag("record-max-mib", INT, 1024, "How large the recording may become; then its oldest part is dropped."),
    ),
    "Shadow": (
        Flag(
            "shadow",
            _SHADOW_TYPE,
            "",
            "Compare the decisions of the scheduler that runs with those of this configuration, and write nothing: for "
            "pods of this schedulerName, or of these, separated by commas; without a value those of all profiles.",
        ),
        Flag(
            "shadow-fail-on",
            STRINGS,
            (),
            "End with exit code 1 if a decision was of one of these classes: differs, stale, sampling, tie, unjudged.",
        ),
        Flag("shadow-report", STRING, "", "Write the report to this file as JSON at the end."),
    ),
    "Live page": (
        Flag("ui", BOOL, True, "Serve the live page at /ui, to whom the API server allows to get that path and /ui/*."),
    ),
    "Process": (
        Flag("core-files", BOOL, False, "Let crashes leave core files, with tokens and keys in them, as ulimit says."),
    ),
}
"""The flags that kube-scheduler does not have."""

ALL_SECTIONS: Final = {**SECTIONS, **OWN_SECTIONS}
"""Every flag that is shown."""


def usage(program: str, gate_lines: list[str], columns: int | None = None) -> str:
    """The flags of every section, aligned, with their types and defaults.

    Args:
        program: the name of the command.
        gate_lines: the feature gates to list under ``--feature-gates``.
        columns: where to break lines; None: nowhere.
    """
    lines = ["Usage:", f"  {program} [flags]"]
    for section, flags in SECTIONS.items():
        lines += ["", f"{section} flags:", ""]
        heads = [_head(flag) for flag in flags]
        width = max(map(len, heads)) + 3
        for flag, head in zip(flags, heads, strict=True):
            first, *more = _wrapped(flag.help + shown_default(flag), columns and columns - width)
            lines.append(head.ljust(width) + first)
            if flag.name == "feature-gates":
                more += gate_lines
            lines += [" " * width + line for line in more]
    return "\n".join(lines) + "\n"


def own_usage(columns: int | None = None) -> str:
    """The flags that kube-scheduler does not have, in lines of *columns* if that is given."""
    lines: list[str] = []
    for section, flags in OWN_SECTIONS.items():
        lines.append(f"{section}:")
        for flag in flags:
            # In another form than the flags of kube-scheduler, so that the two cannot be taken for each other.
            text = f"--{flag.name}: {flag.help}{shown_default(flag)}"
            first, *more = _wrapped(text, columns and columns - 6)
            lines += [f"  {first}", *(f"      {line}" for line in more)]
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str, columns: int | None) -> list[str]:
    """*text* in lines of at most *columns* characters, unless the terminal is too narrow for any."""
    return textwrap.wrap(text, columns, break_on_hyphens=False) if columns and columns >= _NARROWEST else [text]


def _head(flag: Flag) -> str:
    short = f"  -{flag.shorthand}, " if flag.shorthand else "      "
    return f"{short}--{flag.name} {flag.type.name}".rstrip()


def shown_default(flag: Flag) -> str:
    """The default as ``--help`` shows it after the text; empty where nothing means nothing."""
    text = flag.type.show(flag.default)
    if text in ("", "0", "0s", "false", "<nil>") or (flag.type is STRINGS and not flag.default):
        return ""
    return f" (default {quote(text) if flag.type is STRING else text})"
