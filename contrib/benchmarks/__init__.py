"""How fast trio-sched is: ``python -m contrib.benchmarks [engine|transport|watch|path] [--json FILE]``.

Machines are noisy: compare ratios within one run, and quote the command with every figure.
"""
