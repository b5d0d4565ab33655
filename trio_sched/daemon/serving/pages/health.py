"""Answers ``/healthz``, ``/livez`` and ``/readyz``, all health checks at once or one by one; `endpoints` lists them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from trio_sched.daemon.serving.messages import Handler, Request, Response, plain, refusal
from trio_sched.go.text import quote

log = logging.getLogger(__name__)

RecordCheck = Callable[[str, str, str], None]
"""Takes ``healthz``, ``livez`` or ``readyz``, the name of a check, and ``success`` or ``error``."""


@frozen
class Check:
    """One check: its name, and what is wrong; empty if nothing is."""

    name: str
    problem: Callable[[], str]
    only_if_failing: bool = False
    """It stands in the list of its endpoint only while it fails: kube-scheduler does not have it."""


def passes() -> str:
    """The problem of a check that cannot fail."""
    return ""


PING: Final = Check("ping", passes)


@define(eq=False)
class HealthEndpoint:
    """An endpoint with its checks."""

    name: str
    """``healthz``, ``livez`` or ``readyz``."""
    checks: Sequence[Check]
    record: RecordCheck
    _failing: set[str] = field(init=False, factory=set)
    """The checks whose failure is in the log."""

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of the endpoint, and one for each of its checks, by path."""
        return {
            f"/{self.name}": self.serve_all,
            **{f"/{self.name}/{check.name}": self._handler_of(check) for check in self.checks},
        }

    async def serve_all(self, request: Request) -> Response:
        """``ok``, or a line for each check if one fails or the client asks for it."""
        excluded = set(request.parameters("exclude"))
        unknown = set(excluded)
        lines, failures = [], {}
        for check in self.checks:
            if check.name in excluded:
                unknown.discard(check.name)
                if not check.only_if_failing:
                    lines.append(f"[+]{check.name} excluded: ok")
                continue
            problem = check.problem()
            if problem:
                failures[check.name] = problem
                lines.append(f"[-]{check.name} failed: reason withheld")
            elif not check.only_if_failing:
                lines.append(f"[+]{check.name} ok")
            if problem or not check.only_if_failing:
                self.record(self.name, check.name, "error" if problem else "success")
        if unknown:
            listed = ",".join(map(quote, sorted(unknown)))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
        self._log(failures)
        if failures:
            return refusal("\n".join([*lines, f"{self.name} check failed"]), 500)
        if not _has_parameter(request, "verbose"):
            return plain("ok")
        return plain("\n".join([*lines, f"{self.name} check passed"]) + "\n")

    def _log(self, failures: Mapping[str, str]) -> None:
        """Log failures when they begin: probes come every few seconds."""
        if failures.keys() - self._failing:
            reasons = "".join(f"[-]{name} failed: {problem}\n" for name, problem in failures.items())
            log.info("%s check failed: %s\n%s", ",".join(failures), self.name, reasons)
        self._failing = set(failures)

    def _handler_of(self, check: Check) -> Handler:
        async def serve_one(_request: Request) -> Response:
            problem = check.problem()
            if problem:
                return refusal(f"internal server error: {problem}", 500)
            return plain("ok", nosniff=False)

        return serve_one


def _has_parameter(request: Request, name: str) -> bool:
    return bool(request.parameters(name))
