"""All mixed scenarios."""

from __future__ import annotations

from typing import Final

from contrib.scenarios.mixed.claims import CLAIMS
from contrib.scenarios.mixed.nodes import NODES, RESOURCES
from contrib.scenarios.mixed.other_pods import AFFINITY, SPREAD
from contrib.scenarios.mixed.victims_and_gangs import GANGS, PREEMPTION
from contrib.scenarios.mixed.volumes import VOLUMES

MIXED_SCENARIOS: Final = (*RESOURCES, *NODES, *AFFINITY, *SPREAD, *VOLUMES, *PREEMPTION, *CLAIMS, *GANGS)
"""Resources first, what not every API server serves last."""
