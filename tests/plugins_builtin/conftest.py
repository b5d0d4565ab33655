"""Lets the property tests of this folder share their helper modules; importlib mode knows no siblings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
