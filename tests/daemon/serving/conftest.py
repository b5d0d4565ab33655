import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for what the tests of this folder share; importlib mode has no siblings
