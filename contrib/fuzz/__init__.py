"""Fuzzing of everything that decodes bytes from outside: ``python -m contrib.fuzz --minutes 60``.

`targets` has a function per decoder: whatever the bytes are, it may raise nothing but what the decoder documents, take
no longer than some seconds, and where a decoder has two ways, both must come to the same. The fuzzer is atheris
(libFuzzer), which looks for inputs that reach new code; what it finds is mended, and gets a test beside the others of
its decoder.
"""
