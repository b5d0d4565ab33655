import pytest

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.server_url import normalise_server


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
        ("https://a\nb", r'parse "https://a\x0ab": net/url: invalid control character in URL'),
        ("ftp://h", 'unsupported scheme "ftp" of the server "ftp://h", must be http or https'),
        ("https://", 'host must be a URL or a host:port pair: "https://"'),
    ],
)
def test_what_is_no_address_is_refused(server: str, error: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        normalise_server(server, has_tls_settings=False)
    assert str(caught.value) == error
