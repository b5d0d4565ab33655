import pytest
from failing_cases import failing

from trio_sched.cli.flags.go_flags import (
    BOOL,
    DURATION,
    FLOAT32,
    INT,
    INT32,
    INT32S,
    IP,
    LEVEL,
    MAPPING,
    NAMED_CERT_KEY,
    PATTERNS,
    QUANTITY,
    SETTINGS,
    STRING,
    STRINGS,
    Flag,
    FlagError,
    ParsedFlags,
    parse_go_flags,
)

FLAGS = (
    Flag("name", STRING, "", ""),
    Flag("on", BOOL, False, ""),
    Flag("int", INT, 0, ""),
    Flag("int32", INT32, 0, ""),
    Flag("float", FLOAT32, 0.0, ""),
    Flag("for", DURATION, 0, ""),
    Flag("ip", IP, "", ""),
    Flag("list", STRINGS, ("default",), ""),
    Flag("curves", INT32S, (), ""),
    Flag("map", MAPPING, {}, ""),
    Flag("gate-s", SETTINGS, (), ""),
    Flag("v", LEVEL, 0, "", shorthand="v"),
    Flag("help", BOOL, False, "", shorthand="h"),
    Flag("vmodule", PATTERNS, (), ""),
    Flag("size", QUANTITY, 0, ""),
    Flag("sni", NAMED_CERT_KEY, (), ""),
)


def parse(*argv: str) -> ParsedFlags:
    return parse_go_flags(FLAGS, argv)


UNDERSTOOD = [
    (["--name=a=b"], "name", "a=b"),
    (["--name", "--on"], "name", "--on"),
    (["--on"], "on", True),
    (["--on=F"], "on", False),
    (["--int=0x1F"], "int", 31),
    (["--int=-017"], "int", -15),
    (["--int=0b_11"], "int", 3),
    (["--float=1e3"], "float", 1000.0),
    (["--for=1m"], "for", 60_000_000_000),
    (["--ip="], "ip", ""),
    (["--ip=::1"], "ip", "::1"),
    (["--name=a", "--name=b"], "name", "b"),
    (["--list=a,b", '--list="c,d"'], "list", ("a", "b", "c,d")),
    ([], "list", ("default",)),
    (["--curves=1,2", "--curves=3"], "curves", (1, 2, 3)),
    (["--map=a,b=c,d", "--map=e=f"], "map", {"a,b": "c,d", "e": "f"}),
    (["--gate_s=A=true", "--gate-s=B=false"], "gate-s", ("A=true", "B=false")),
    (["-v3"], "v", 3),
    (["-v", "4"], "v", 4),
    (["-hv=5"], "v", 5),
    (["--vmodule=a=1,b*=2"], "vmodule", (("a", 1), ("b*", 2))),
    (["--size=1Ki"], "size", 1024),
    (["--sni=c,k:*.a,b"], "sni", (("c", "k", ("*.a", "b")),)),
]


def test_a_flag_is_understood_as_go_understands_it() -> None:
    def check(case: tuple[list[str], str, object]) -> None:
        argv, name, value = case
        parsed = parse(*argv)
        assert parsed.values[name] == value
        assert (name in parsed.given) == bool(argv)

    assert failing({f"{name}: {argv}": (argv, name, value) for argv, name, value in UNDERSTOOD}, check) == {}


def test_a_switch_does_not_take_the_next_argument() -> None:
    parsed = parse("--on", "true", "--", "--name")
    assert parsed.values["on"] is True
    assert parsed.arguments == ("true", "--name")


MISTAKES = [
    (["--nosuch=1"], "unknown flag: --nosuch"),
    (["--nam=x"], "unknown flag: --nam"),
    (["--name"], "flag needs an argument: --name"),
    (["--=x"], "bad flag syntax: --=x"),
    (["---x"], "bad flag syntax: ---x"),
    (["-x"], "unknown shorthand flag: 'x' in -x"),
    (["-name=x"], "unknown shorthand flag: 'n' in -name=x"),
    (["-v"], "flag needs an argument: 'v' in -v"),
    (
        ["--on=yes"],
        'invalid argument "yes" for "--on" flag: strconv.ParseBool: parsing "yes": invalid syntax',
    ),
    (["--int=1.5"], 'invalid argument "1.5" for "--int" flag: strconv.ParseInt: parsing "1.5": invalid syntax'),
    (["--int=0x_"], 'invalid argument "0x_" for "--int" flag: strconv.ParseInt: parsing "0x_": invalid syntax'),
    (["--int="], 'invalid argument "" for "--int" flag: strconv.ParseInt: parsing "": invalid syntax'),
    (
        ["--int32=99999999999"],
        'invalid argument "99999999999" for "--int32" flag: strconv.ParseInt: parsing "99999999999": '
        "value out of range",
    ),
    (["--float=x"], 'invalid argument "x" for "--float" flag: strconv.ParseFloat: parsing "x": invalid syntax'),
    (["--for=5"], 'invalid argument "5" for "--for" flag: time: missing unit in duration "5"'),
    (["--ip=foo"], 'invalid argument "foo" for "--ip" flag: failed to parse IP: "foo"'),
    (["-v=abc"], 'invalid argument "abc" for "-v, --v" flag: strconv.ParseUint: parsing "abc": invalid syntax'),
    (["--vmodule=foo"], 'invalid argument "foo" for "--vmodule" flag: "foo" does not have the pattern=N format'),
    (["--map=a"], 'invalid argument "a" for "--map" flag: a must be formatted as key=value'),
    (["--sni=a"], 'invalid argument "a" for "--sni" flag: expected comma separated certificate and key file paths'),
    (
        ["--on=no", "--nosuch"],
        'invalid argument "no" for "--on" flag: strconv.ParseBool: parsing "no": invalid syntax',
    ),
]


def test_the_first_mistake_is_reported_in_gos_words() -> None:
    def check(case: tuple[list[str], str]) -> None:
        argv, problem = case
        with pytest.raises(FlagError) as caught:
            parse(*argv)
        assert str(caught.value) == problem

    assert failing({str(argv): (argv, problem) for argv, problem in MISTAKES}, check) == {}
