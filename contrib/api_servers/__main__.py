"""``python -m contrib.api_servers FOLDER``: the end-to-end tests against every API server in the sub-folders of FOLDER.

A sub-folder is what ``KUBEBUILDER_ASSETS`` names: etcd, kube-apiserver, and for some tests kube-controller-manager,
kube-scheduler and kubectl. From each server there is also an upgrade to the next one, under a running scheduler.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from contrib.api_servers.runs import TESTS, pairs_of, run_tests, servers_in


def main() -> int:
    """Run them; returns 1 if a test has failed, 2 if there is no API server."""
    parser = argparse.ArgumentParser(prog="python -m contrib.api_servers", description=__doc__)
    parser.add_argument("folder", type=Path, help="has a folder with executables for each version")
    parser.add_argument("tests", nargs="*", default=TESTS, help="for pytest")
    given = parser.parse_args()
    servers = servers_in(given.folder)
    if not servers:
        parser.error(f"{given.folder} has no sub-folder with etcd and kube-apiserver")
    failed = False
    for runs in (({"KUBEBUILDER_ASSETS": one.folder}, one.version, given.tests) for one in servers), pairs_of(servers):
        for environment, what, tests in runs:
            passed, last_line = run_tests(environment, tests)
            failed = failed or not passed
            print(f"{what:20}  {last_line}", flush=True)
    return 1 if failed else 0


raise SystemExit(main())
