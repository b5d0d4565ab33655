"""How fast trio-sched is: ``python -m contrib.benchmarks [BENCH …] [--json FILE]``; ``--help`` has more.

Machines are noisy: compare ratios within one run, and quote the command with every figure.
"""
