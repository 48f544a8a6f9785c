"""Stores of every kind, made by Java's keytool and by OpenSSL's formats, read into memory."""

from pathlib import Path

import pytest
from cryptography import x509

from spark_jobs.access.stores import pem_text, read_identity, read_trusted
from spark_jobs.errors import ConfigError
from tests.harness.certificates import STORE_PASSWORD, Authority

pytestmark = pytest.mark.service  # it makes keys and stores

KINDS = ("PEM", "PKCS12", "JKS")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("kind", KINDS)
def test_trusted_certificates(authority: Authority, kind: str) -> None:
    data = authority.truststore(kind).read_bytes()
    password = None if kind == "PEM" else STORE_PASSWORD
    assert read_trusted(data, password, "it").strip() == authority.root_pem.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_identity(authority: Authority, kind: str) -> None:
    signed = authority.sign("ann")
    data = authority.keystore(signed, f"ann-{kind}", kind, password=STORE_PASSWORD).read_bytes()
    identity = read_identity(data, STORE_PASSWORD, STORE_PASSWORD, "it")
    assert identity.key_pem() == signed.key_pem()
    assert [c.subject.rfc4514_string() for c in identity.chain] == ["CN=ann", "CN=test root"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_is_named_and_not_shown(authority: Authority, kind: str) -> None:
    path = authority.keystore(authority.sign("bob"), f"bob-{kind}", kind, password=STORE_PASSWORD)
    with pytest.raises(ConfigError, match=r"STORE_UNREADABLE the key store") as refused:
        read_identity(path.read_bytes(), "not-it-1", "not-it-1", "the key store")
    assert "not-it-1" not in refused.value.render()


def test_damaged_stores(authority: Authority) -> None:
    jks = authority.truststore("JKS").read_bytes()
    for data in (jks[:60], b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(ConfigError, match="STORE_UNREADABLE"):
            read_trusted(data, None, "it")


def test_pem_on_one_line(authority: Authority) -> None:
    flat = " ".join(authority.root_pem.split("\n"))
    [certificate] = x509.load_pem_x509_certificates(pem_text(flat))
    assert certificate.subject.rfc4514_string() == "CN=test root"


def test_files_do_not_stay(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_jobs.access.stores import tls_context

    folder = authority.folder / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    data = authority.keystore(authority.sign("eve"), "eve", "PKCS12").read_bytes()
    tls_context(authority.root_pem, read_identity(data, STORE_PASSWORD, None, "it"))
    assert list(Path(folder).iterdir()) == []
