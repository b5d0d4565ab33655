"""What Kubernetes refuses in the terms of node selectors."""

from collections.abc import Iterator

from trio_sched.config.errors import Problem
from trio_sched.objects.selector import NodeSelectorTerm
from trio_sched.snapshot.labels import selector_problems


def term_problems(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    """What is wrong with *term*, which stands at *path*."""
    return (Problem(*one) for one in selector_problems.term_problems(term, path))
