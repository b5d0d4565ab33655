"""``python -m contrib.fuzz``: decode whatever may come from outside, for a time; needs ``pip install atheris``."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

LONGEST_SECONDS: Final = 60
"""One input may take so long, on a machine that is busy with other things."""
MOST_MEMORY_MIB: Final = 1536
MAX_LENGTH: Final = 8192


def main() -> int:
    """Fuzz the targets one after the other; 1 if one of them found something."""
    parser = argparse.ArgumentParser(prog="python -m contrib.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="of all targets together (default: 60)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of everything random (default: 1)")
    parser.add_argument("--target", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument(
        "--found", type=Path, default=Path("fuzz-found"), help="where inputs are kept that found something"
    )
    parser.add_argument("--input", type=Path, metavar="FILE", help="only decode this, with the one --target")
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)  # of a process with one target
    given = parser.parse_args()
    if given.seconds is not None:
        _fuzz(given.target[0], given.seconds, given.seed, given.found)
    from contrib.fuzz.targets import TARGETS

    names = given.target or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"there is no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    if given.input is not None:
        if len(names) != 1:
            parser.error("--input is decoded by one target: say which with --target")
        try:
            content = given.input.read_bytes()
        except OSError as problem:
            parser.error(f"--input: {problem}")
        TARGETS[names[0]].try_one(content)
        return 0
    if importlib.util.find_spec("atheris") is None:
        parser.error("the fuzzer is missing: pip install atheris")
    given.found.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names if not _run(name, given.minutes * 60 / len(names), given.seed, given.found)]
    print(f"{len(names) - len(failed)} of {len(names)} decoders held; found something: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _run(name: str, seconds: float, seed: int, found: Path) -> bool:
    """Fuzz one target in a process of its own: the fuzzer ends it, and its code is instrumented."""
    options = ["--target", name, "--seconds", str(max(1, int(seconds))), "--seed", str(seed), "--found", str(found)]
    done = subprocess.run(
        [sys.executable, "-m", "contrib.fuzz", *options], stderr=subprocess.PIPE, text=True, check=False
    )
    said = done.stderr.splitlines()
    executed = next((line.split()[-1] for line in said if "number_of_executed_units" in line), "?")
    print(f"{name:24} {executed:>9} inputs  {'held' if done.returncode == 0 else 'FOUND SOMETHING'}", flush=True)
    if done.returncode:
        print("\n".join(line for line in said if not line.startswith(("INFO:", "WARNING:"))), flush=True)
    return done.returncode == 0


def _fuzz(name: str, seconds: int, seed: int, found: Path) -> None:
    """Fuzz until the time is over or something was found; never returns."""
    import atheris

    with atheris.instrument_imports(include=["trio_sched"]):
        from contrib.fuzz.targets import TARGETS
    with tempfile.TemporaryDirectory() as corpus:
        for number, example in enumerate(TARGETS[name].examples):
            Path(corpus, str(number)).write_bytes(example)
        options = {
            "max_total_time": seconds,
            "seed": seed,
            "timeout": LONGEST_SECONDS,
            "rss_limit_mb": MOST_MEMORY_MIB,
            "max_len": MAX_LENGTH,
            "artifact_prefix": f"{found}/{name}-",
            "print_final_stats": 1,
            "verbosity": 0,
        }
        atheris.Setup(
            [sys.argv[0], *(f"-{option}={value}" for option, value in options.items()), corpus], TARGETS[name].try_one
        )
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
