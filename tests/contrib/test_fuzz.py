"""The fuzzing targets themselves hold for their examples and for some inputs that are nearly these."""

import traceback
from random import Random

import pytest

from contrib.fuzz.targets import TARGETS, Target

MUTATIONS = 100
SPLICES = (b"", b"\x00", b"\xff", b'"', b"\\", b"{", b"]", b"\n", b"-", b"9" * 400, b"[" * 300, b"\xed\xa0\x80")


def mutated(random: Random, data: bytes) -> bytes:
    """*data* with up to three pieces replaced, doubled, or gone."""
    for _ in range(random.randint(1, 3)):
        begin = random.randint(0, len(data))
        end = min(len(data), begin + random.choice((0, 1, 1, 2, 8, 50)))
        new = random.choice((*SPLICES, data[begin:end] * 2, bytes([random.randrange(256)])))
        data = data[:begin] + new + data[end:]
    return data


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_a_decoder_raises_nothing_but_what_it_documents(target: Target) -> None:
    random = Random(1)
    faults: dict[bytes, list[str]] = {}
    for example in target.examples:
        for data in (example, *(mutated(random, example) for _ in range(MUTATIONS))):
            try:
                target.try_one(data)
            except Exception as fault:
                faults[data] = traceback.format_exception(fault)
    assert faults == {}
