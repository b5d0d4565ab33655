"""What the decoders decode: where the fuzzer begins. The first byte or two of some are parameters of their target."""

from __future__ import annotations

import gzip
import json
from typing import Any, Final


def _json(*values: Any) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() for value in values)


def _behind(parameters: bytes, texts: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(parameters + text for text in texts)


_META: Final = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"}}
_POD: Final = {
    "metadata": _META,
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": 5}}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": 'we"ird\u2028'}}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
}
_STATUS: Final = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old", "details": {"causes": []}}
_LIST: Final = {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": [_POD, _POD, _POD]}
_EVENTS: Final = (
    {"type": "ADDED", "object": _POD},
    {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}},
    {"type": "ERROR", "object": _STATUS},
)
DEVICE: Final = json.dumps(
    {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "a100"},
            "index": {"int": 3},
            "ok": {"bool": True},
            "v": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }
).encode()
_COMPACT: Final = json.dumps(_LIST, separators=(",", ":")).encode()
_BODY: Final = json.dumps(_STATUS).encode()
_ZIPPED: Final = gzip.compress(_BODY, mtime=0)

RESPONSES: Final = _behind(
    b"\x05",
    (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n{}\r\n\r\n0\r\nTrailer: t\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_ZIPPED) + _ZIPPED,
        b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ),
)
STATUSES: Final = (b"\x00" + _BODY, b"\x63<html>login</html>", b"\x01https://user:secret@host/login?token=1#x")
PROXY_ANSWERS: Final = (
    b"\x03HTTP/1.1 200 Connection established\r\n\r\n",
    b"\x02HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
    b"\x01\x05\x02\x01\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00",
)
WATCH_LINES: Final = (b"\x00" + b"\n".join(_json(*_EVENTS)) + b"\n", *_behind(b"\x01", _json(*_EVENTS)))
VALUES: Final = _json(_POD, _LIST, [1, [2, {"a": "]"}], "x\\", None], "text", 1.5e3, {})
OBJECTS: Final = _behind(b"\x00", VALUES)
LISTS: Final = (b"\x00\x07" + _COMPACT, *_behind(b"\x01\x30", _json(_LIST, {"items": None}, {"items": []})))
SELECTORS: Final = _json(
    {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y z"]}]},
    {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a/b", "operator": "Gt", "values": ["5"]}], "matchFields": []}
        ]
    },
)
QUANTITIES: Final = (
    b"100m",
    b"1.5Gi",
    b"-12e6",
    b"1E-9",
    b"0.000000000001",
    b"2026-01-02T03:04:05Z",
    b"1h2m3.5s",
    b"-1ns",
)
EXPRESSIONS: Final = (
    b'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].index >= 3',
    b'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) > 0',
    b'["a", "b"].exists(x, x.matches("^[a-z]+$")) ? semver("1.2.3").isGreaterThan(semver("1.0.0")) : false',
    b'cel.bind(d, device.attributes["gpu.example.com"], d.model.lowerAscii() == "a") || "%s".format([1]) == ""',
    b'dyn({"a": [1, 2u, 3.0]}).a.map(x, x + 1).all(x, x > duration("1h"))',
)
_CONFIG: Final = b"""\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: n}}]
clusters: [{name: c, cluster: {server: "http://host:80/p", proxy-url: "http://p:1", tls-server-name: t}}]
users: [{name: u, user: {token: t, username: "", as: i, exec: null}}]
"""
KUBECONFIGS: Final = (
    _CONFIG,
    _CONFIG.replace(
        b"exec: null", b"exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{name: a}]}"
    ),
    _CONFIG.replace(b"http://host", b"https://host").replace(
        b"token: t", b"client-certificate-data: eA==, client-key-data: eA=="
    ),
)
DOCUMENTS: Final = (
    b"a: &x [1, 0o7, 0x1F, 1_000, .inf, ~, yes, 2026-01-01, !!binary eA==]\nb: *x\n? [c]\n: |\n  text\n",
    b"---\n- 'it''s'\n...\n--- {a: 1}\n",
    b"base: &b {x: 1}\nderived: {<<: *b, y: 2}\nx: >-\n  folded\n",
    b'{"a": {"a": 1, "a": 2}, "b": ["\\ud83d\\ude00", 1e400, -0]}\n{"second": 1}',
)
_HEAD: Final = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CONFIGURATIONS: Final = (
    _HEAD
    + b"""\
parallelism: 16
leaderElection: {leaderElect: true, leaseDuration: 15s, resourceName: x}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 50
  plugins: {multiPoint: {enabled: [{name: NodeResourcesFit, weight: 2}], disabled: [{name: "*"}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}]}
  - {name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}}}
extenders:
- {urlPrefix: "http://x", filterVerb: f, weight: 1, httpTimeout: 5s, managedResources: [{name: example.com/x}]}
""",
    _HEAD + b"profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1}]}}]}]\n",
    _HEAD + b"clientConnection: {qps: 1.5, burst: 3, contentType: x}\npodInitialBackoffSeconds: 1\n",
)
OLD_CONFIGURATIONS: Final = (
    CONFIGURATIONS[0].replace(b"io/v1\n", b"io/v1beta3\n"),
    CONFIGURATIONS[0].replace(b"io/v1\n", b"io/v1beta2\n"),
    _HEAD.replace(b"io/v1\n", b"io/v1alpha1\n") + b"algorithmSource: {provider: DefaultProvider}\n"
    b"healthzBindAddress: 1.2.3.4:5\nplugins: {score: {enabled: [{name: x, weight: 1}]}}\n",
)
CREDENTIALS: Final = _json(
    {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z", "clientCertificateData": ""},
    }
)
PEM: Final = (
    b"-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"
    b"-----BEGIN PRIVATE KEY-----\neA==\n-----END PRIVATE KEY-----\n",
    b" token\n",
)
URLS: Final = (
    b"https://user:pa%20ss@[::1%25eth0]:6443/a?b#c",
    b"host:8080",
    b"http://b\xc3\xbccher.example:80",
    b"socks5://a:b@c",
)
FLAGS: Final = (
    b"--config=/x\0-v=4\0--vmodule=a=1,b*=2\0--feature-gates=A=true,B=false\0--leader-elect\0--kube-api-qps=1e3\0--secure-port\0-1",
    b'--tls-sni-cert-key=a,b:c\0--allow-metric-labels=m,l="x,y"\0--bind-address=::1\0--emulated-version=1.36\0--log-json-info-buffer-size=1Mi',
)
EXTENDER_ANSWERS: Final = _json(
    {
        "Nodes": {"items": [{"metadata": {"name": "a"}}]},
        "NodeNames": ["a", None],
        "FailedNodes": {"b": "x"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    },
    [{"Host": "a", "Score": 10}],
    {"Error": "no"},
    {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}},
)
REQUESTS: Final = (
    b"seconds=5&pretty=1&exclude=ping&debug=%31\naccept: application/json;as=Table;g=g;v=v1;q=0.5, */*\n"
    b"authorization: Bearer abc\nuser-agent: curl/8\n",
    b"4\naccept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=.3,"
    b"text/plain\n"
    b"sec-websocket-protocol: base64url.bearer.authorization.k8s.io.YWJj, binary\n",
    b"a=1,b*=2\nx-remote-extra-a%20b: c\n",
)
