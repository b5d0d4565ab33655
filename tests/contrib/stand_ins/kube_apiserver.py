"""Stands in for kube-apiserver: the simulator; objects are read from etcd's stand-in and written there at the end."""

import argparse
import json
import os
import signal
import urllib.request
from functools import partial
from pathlib import Path

import trio

from trio_sched.simulator import ApiServer, populate, serve, wall_clock

KINDS = {
    "priorityclasses.scheduling.k8s.io": ("scheduling.k8s.io/v1", "PriorityClass"),
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in (
        "--bind-address",
        "--advertise-address",
        "--endpoint-reconciler-type",
        "--cert-dir",
        "--authorization-mode",
        "--disable-admission-plugins",
        "--service-account-issuer",
        "--service-account-key-file",
        "--service-account-signing-key-file",
        "--service-cluster-ip-range",
        "--etcd-servers",
    ):
        parser.add_argument(flag, required=True)
    for flag in ("--feature-gates", "--runtime-config", "--event-ttl"):
        parser.add_argument(flag)
    parser.add_argument("--secure-port", type=int, required=True)
    parser.add_argument("--tls-cert-file", type=Path, required=True)
    parser.add_argument("--tls-private-key-file", type=Path, required=True)
    parser.add_argument("--token-auth-file", type=Path, required=True)
    return parser.parse_args()


async def run(server: ApiServer, given: argparse.Namespace) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            files = {"certificate": given.tls_cert_file, "private_key": given.tls_private_key_file}
            await nursery.start(partial(serve, server, port=given.secure_port, **files))
            async for _ in signals:
                nursery.cancel_scope.cancel()


def main(given: argparse.Namespace) -> None:
    # The seed of the server that wrote the objects would give their UIDs to new ones.
    server, stored = ApiServer(now=wall_clock, seed=os.getpid()), f"{given.etcd_servers}/objects"
    with urllib.request.urlopen(stored) as response:
        populate(server, json.load(response))
    trio.run(run, server, given)
    objects = [
        {"apiVersion": version, "kind": kind, **one.fields}
        for collection, (version, kind) in KINDS.items()
        for one in server.store.collection(collection).in_order()
    ]
    urllib.request.urlopen(urllib.request.Request(stored, json.dumps(objects).encode(), method="PUT")).close()


main(options())
