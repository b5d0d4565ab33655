"""The fields of another version of Kubernetes, from its ``.proto`` files."""

from contrib.api_shapes.make_newer_shapes import marks_in, newer_fields
from contrib.api_shapes.make_shapes import messages_in

PROTO = """\
syntax = "proto2";

package k8s.io.api.core.v1;

message Mount {
  // +optional
  optional string name = 1;

  // Options.
  // +listType=set
  repeated string options = 2;

  // Renamed, as JSON has another name for it.
  optional string uID = 3;

  // +listType=map
  // +listMapKey=kind
  // +listMapKey=name
  // +patchStrategy=merge
  // +patchMergeKey=name
  // +k8s:listType=map
  repeated Part parts = 4;

  // +patchStrategy=merge

  map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> amounts = 5;
}

message Part {
  optional Empty inner = 1;
}

message Empty {
}

message Unused {
  optional int32 count = 1;
}
"""


def test_only_what_is_new_is_written_with_all_that_it_leads_to() -> None:
    table = {"core.v1.Mount": {"name": [1, "string"], "uid": [3, "string"]}}
    marks = {f"core.v1.{message}.{field}": one for (message, field), one in marks_in(PROTO).items()}
    assert newer_fields(table, messages_in(PROTO), marks) == {
        "core.v1.Mount": {
            "options": [2, "list string", None, "", "set"],
            "parts": [4, "list core.v1.Part", "name", "merge", ["kind", "name"]],
            "amounts": [5, "map quantity"],
        },
        "core.v1.Part": {"inner": [1, "core.v1.Empty"]},
        "core.v1.Empty": {},
    }
