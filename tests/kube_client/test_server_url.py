import pytest

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.server_url import host_and_port, host_header_of, normalise_server, redacted


@pytest.mark.parametrize(
    ("server", "error"),
    [
        ("::bad::", 'parse "http://::bad::": invalid port "::bad::" after host'),
        ("https://h:abc", 'parse "https://h:abc": invalid port ":abc" after host'),
        ("https://h:70000", 'parse "https://h:70000": invalid port ":70000" after host'),
        ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
        ("https://[::1]x", 'parse "https://[::1]x": invalid port "x" after host'),
        ("https://[zz]", 'parse "https://[zz]": invalid host: "[zz]"'),
        ("https://a b", 'parse "https://a b": invalid character " " in host name'),
        ("https://a\nb", r'parse "https://a\nb": net/url: invalid control character in URL'),
        ("ftp://h", 'unsupported scheme "ftp" of the server "ftp://h", must be http or https'),
        ("https://h:" + "9" * 5000, f'parse "https://h:{"9" * 5000}": invalid port ":{"9" * 5000}" after host'),
        ("https://h:\uff11", 'parse "https://h:\uff11": invalid port ":\uff11" after host'),
        ("https://a..b", 'parse "https://a..b": invalid host "a..b": a label has 1 to 63 characters'),
        (
            "https://" + "a" * 64,
            f'parse "https://{"a" * 64}": invalid host "{"a" * 64}": a label has 1 to 63 characters',
        ),
        (
            "https://b\u00fc..x",
            'parse "https://b\u00fc..x": invalid host "b\u00fc..x": it is no internationalised domain name',
        ),
        ("h]", 'parse "http://h]": invalid character "]" in host name'),
        ("https://h[x:1", 'parse "https://h[x:1": invalid character "[" in host name'),
        ('https://[::1%25e["%25]', r'parse "https://[::1%25e[\"%25]": invalid URL escape "%25"'),
        ("https://[fe80::1%eth0]", 'parse "https://[fe80::1%eth0]": invalid URL escape "%et"'),
        (
            "https://me:s3cr3t@a..b",
            'parse "https://me:xxxxx@a..b": invalid host "a..b": a label has 1 to 63 characters',
        ),
        ("https://me:s3/cr3t@h", 'parse "https://me:xxxxx@h": invalid port after host'),
        ("ftp://me:s3cr3t@h", 'unsupported scheme "ftp" of the server "ftp://me:xxxxx@h", must be http or https'),
        (
            "https://me:s3cr3t@\u2100",
            'parse "https://me:xxxxx@\u2100": invalid host "\u2100": it is no internationalised domain name',
        ),
        ("https://", 'host must be a URL or a host:port pair: "https://"'),
    ],
)
def test_what_is_no_address_is_refused(server: str, error: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        normalise_server(server, has_tls_settings=False)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("server", "url", "host", "port", "host_header"),
    [
        ("https://[fe80::1%25eth0]:6443", "https://[fe80::1%25eth0]:6443", "fe80::1%eth0", 6443, "[fe80::1]:6443"),
        ("https://[::1]", "https://[::1]", "::1", 443, "[::1]"),
        ("https://B\u00fccher.example:1", "https://xn--bcher-kva.example:1", "xn--bcher-kva.example", 1, None),
        ("a_b.c.:80", "http://a_b.c.:80", "a_b.c.", 80, "a_b.c.:80"),
        ("http://h:", "http://h:", "h", 80, "h:"),
    ],
)
def test_hosts_are_dialled_as_the_url_means_them(
    server: str, url: str, host: str, port: int, host_header: str | None
) -> None:
    assert normalise_server(server, has_tls_settings=False) == url
    assert host_and_port(url) == (host, port)
    assert host_header_of(url) == (host_header or f"{host}:{port}").encode()


def test_a_path_is_escaped_as_in_a_request() -> None:
    url = normalise_server("https://h/a b/\u00fc/%20/?q#f", has_tls_settings=False)
    assert url == "https://h/a%20b/%C3%BC/%20"
    with pytest.raises(KubeconfigError, match=r'^parse "https://h/%zz": invalid URL escape "%zz"$'):
        normalise_server("https://h/%zz", has_tls_settings=False)


def test_a_password_in_a_url_is_not_shown() -> None:
    assert redacted("https://user:secret@host/x") == "https://user:xxxxx@host/x"
    assert redacted("https://user:sec%40ret@host:8/x@y:z") == "https://user:xxxxx@host:8/x@y:z"
    assert redacted("https://user@host") == "https://user@host"
    assert redacted("http://h:80/a@b") == "http://h:80/a@b"
    assert redacted("user:secret@host") == "user:xxxxx@host"
