"""Stands in for kube-scheduler: trio-sched under another name."""

import sys

from trio_sched.cli.main import main

sys.argv[0] = "kube-scheduler"
main()
