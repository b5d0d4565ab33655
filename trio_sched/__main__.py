"""``python -m trio_sched`` is ``trio-sched``."""

import sys

from trio_sched.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
