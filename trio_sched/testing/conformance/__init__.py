"""Checks that any plugin package can run on its own plugins; one file per check or two.

``check.py`` lists them, ``subject.py`` makes the instances of the plugin that is checked and ``examples.py`` the
cluster. Where something has to change, ``cluster_state.py`` is a cluster at one moment, ``changes.py`` makes random
changes and ``vocabulary.py`` finds the labels and other texts that a plugin reads.
"""

from trio_sched.testing.conformance.check import NotConforming as NotConforming
from trio_sched.testing.conformance.check import check_conformance as check_conformance
from trio_sched.testing.conformance.check import conformance_test as conformance_test
