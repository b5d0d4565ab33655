"""Rules of what only containers on Windows have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.containers import placed_containers
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS_DOMAIN: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL: Final = r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS_DOMAIN: Final = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_USER_TABOO: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_LONGEST_DOMAIN: Final = 255
_LONGEST_USER: Final = 104
_LARGEST_CREDENTIALS: Final = 64 << 10


def windows_option_problems(options: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``windowsOptions`` of a security context."""
    name, credentials, user = (
        options.get(f) for f in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName")
    )
    if name is not None and (problem := names.subdomain(name)):
        yield bad_value(f"{path}.gmsaCredentialSpecName", name, problem)
    if credentials == "":
        yield bad_value(f"{path}.gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string")
    elif credentials is not None and len(credentials.encode()) > _LARGEST_CREDENTIALS:
        yield bad_value(f"{path}.gmsaCredentialSpec", credentials, "gmsaCredentialSpec size must be under 64 KiB")
    if user is not None:
        for detail in _user_problems(user):
            yield bad_value(f"{path}.runAsUserName", user, detail)


def _user_problems(text: str) -> Iterator[str]:
    r"""What is wrong with ``user`` or ``domain\user``."""
    if not text:
        yield "runAsUserName cannot be an empty string"
        return
    if _CONTROL.search(text):
        yield "runAsUserName cannot contain control characters"
        return
    if text.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
        return
    domain, has_domain, user = text.rpartition("\\")
    if len(domain.encode()) > _LONGEST_DOMAIN:
        yield "runAsUserName's Domain length must be under 256 characters"
    if has_domain and not _NETBIOS_DOMAIN.fullmatch(domain) and not _DNS_DOMAIN.fullmatch(domain):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user.encode()) > _LONGEST_USER:
        yield f"runAsUserName's User length must not be longer than {_LONGEST_USER} characters"
    if user and not user.strip(". "):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if _USER_TABOO.search(user):
        yield """runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]"""


def host_process_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with containers that run as processes of the host: all of a pod do so, or none."""
    of_pod = _host_process(spec)
    count = found = 0
    for container, where in placed_containers(spec, path):
        own = _host_process(container)
        count += 1
        found += bool(of_pod if own is None else own)
        if None not in (of_pod, own) and of_pod != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield bad_value(f"{where}.securityContext.windowsOptions.hostProcess", own, detail)
    if found and found != count:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield bad_value(path, "", detail)
    if found and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield bad_value(f"{path}.hostNetwork", False, detail)


def _host_process(holder: Json) -> bool | None:
    context = holder.get("securityContext")
    return (context.get("windowsOptions") or {}).get("hostProcess") if context else None
