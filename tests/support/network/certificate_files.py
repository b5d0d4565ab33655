from pathlib import Path

import trustme


def write_certificate(authority: trustme.CA, name: str, folder: Path) -> tuple[Path, Path]:
    """Issue a certificate for *name* and write it and its key into *folder*; gives both paths."""
    leaf = authority.issue_cert(name)
    certificate, key = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(leaf.cert_chain_pems[0].bytes())
    key.write_bytes(leaf.private_key_pem.bytes())
    return certificate, key
