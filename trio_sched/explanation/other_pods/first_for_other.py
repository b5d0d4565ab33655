"""What lets another pending pod run, beside which the pod in question could run."""

from __future__ import annotations

from attrs import evolve, frozen
from msgspec import structs

from trio_sched.explanation.analysis import FailingClause
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, edit_pod


@frozen(kw_only=True)
class FirstForOther:
    """A change with which the other pod runs."""

    clause: FailingClause
    """The requirement of the pod in question that would be met."""
    pod: Pod
    """The other one."""
    made: Change
    node_name: str
    """Where it then runs."""

    def change(self) -> Change:
        """The change, and that the other pod then runs."""

        def placed(one: Pod) -> Pod:
            status = structs.replace(one.status, phase="Running")
            return structs.replace(one, spec=structs.replace(one.spec, node_name=self.node_name), status=status)

        runs = evolve(edit_pod(self.pod, placed), is_consequence=True)
        title = f"first let {self.pod.key} run: {self.made.title}"
        return evolve(self.made, title=title, edits=(*self.made.edits, runs))
