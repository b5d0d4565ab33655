from typing import Final

import pytest
from manifest_mutations import valid_objects
from simulator_api import Api
from status_verdicts import recorded_statuses

from trio_sched.simulator import ApiServer
from trio_sched.simulator.storage.resource_types import TypeRegistry

RECORDED: Final = recorded_statuses()
TYPES: Final = TypeRegistry()


@pytest.mark.parametrize("name", RECORDED)
async def test_a_status_is_accepted_where_kube_apiserver_accepts_it(name: str) -> None:
    api = Api(ApiServer())
    [fields] = [one for one in valid_objects() if f"{one['kind']} {one['metadata']['name']}" == name]
    fields["metadata"].pop("namespace", None)
    resource = TYPES.of_kind(fields["apiVersion"], fields["kind"])
    assert resource is not None
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    path = f"{root}{'/namespaces/default' if resource.namespaced else ''}/{resource.plural}"
    created = await api("POST", path, fields)
    wrong = []
    for verdict, statuses in RECORDED[name].items():
        for status in statuses:
            answer = await api.raw("PUT", f"{path}/{name.split()[1]}/status?dryRun=All", {**created, "status": status})
            if (answer.status >= 300) != (verdict == "refused"):
                wrong.append((verdict, status, answer.body))
    assert wrong == []
