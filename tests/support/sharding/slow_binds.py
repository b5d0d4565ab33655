"""An API server whose binds take a while, each another."""

from random import Random

from attrs import define, field

from trio_sched.simulator.endpoints.faults import Faults


@define(eq=False)
class SlowBinds(Faults):
    """Every bind takes another time, so that those of a gang do not arrive at once."""

    dice: Random = field(factory=lambda: Random(1))

    def __bool__(self) -> bool:
        return True

    def latency_seconds(self, verb: str, resource: str) -> float:
        return self.dice.uniform(0.1, 5.0) if verb == "bind" else super().latency_seconds(verb, resource)
