"""What `simulate` and `compare` need in tests."""

from command_fixtures import _logging_as_before as _logging_as_before
from command_fixtures import small_cluster as small_cluster
