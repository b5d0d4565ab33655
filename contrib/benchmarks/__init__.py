"""How fast trio-sched is: ``python -m contrib.benchmarks [start|engine|…|path] [--json FILE]``; ``--help`` has them all.

Machines are noisy: compare ratios within one run, and quote the command with every figure.
"""
