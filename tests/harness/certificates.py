"""A certificate authority for one test run, and stores of every kind with what it has signed."""

import datetime
import ipaddress
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

STORE_PASSWORD = "store-Pw-93f1"  # noqa: S105
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Signed:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def key_pem(self, password: str | None = None) -> str:
        hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden).decode()

    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


class Authority:
    """Signs for servers on the loopback interface and for clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        self._root = Signed(key, _certificate("test root", key, None, key))

    def sign(self, name: str) -> Signed:
        """`CN=name`, for 127.0.0.1 and localhost too."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Signed(key, _certificate(name, key, self._root.certificate, self._root.key))

    @property
    def root_pem(self) -> str:
        return self._root.certificate_pem()

    def truststore(self, kind: str) -> Path:
        """The root's certificate in a file of that kind: PEM, PKCS12 or JKS."""
        path = self.folder / f"trust.{kind.lower()}"
        if path.exists():
            return path
        if kind == "PEM":
            path.write_text(self.root_pem)
            return path
        pem = self.truststore("PEM")
        _keytool("-importcert", "-noprompt", "-alias", "root", "-file", str(pem),
                 "-keystore", str(path), "-storetype", kind)  # fmt: skip
        return path

    def keystore(self, signed: Signed, name: str, kind: str, password: str | None = None) -> Path:
        """Key, certificate and root; PEM is encrypted only under a `password`."""
        path = self.folder / f"{name}.{kind.lower()}"
        if kind == "PEM":
            path.write_text(signed.key_pem(password) + signed.certificate_pem() + self.root_pem)
            return path
        store = path if kind == "PKCS12" else path.with_suffix(".source.p12")
        hidden = BestAvailableEncryption(STORE_PASSWORD.encode())
        root = [self._root.certificate]
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(), signed.key, signed.certificate, root, hidden
            )
        )
        if kind == "JKS":
            path.unlink(missing_ok=True)
            _keytool("-importkeystore", "-srckeystore", str(store), "-srcstoretype", "PKCS12",
                     "-srcstorepass", STORE_PASSWORD, "-destkeystore", str(path),
                     "-deststoretype", "JKS")  # fmt: skip
        return path


def _keytool(*arguments: str) -> None:
    word = "-deststorepass" if "-importkeystore" in arguments else "-storepass"
    jvm = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]  # it lives for a moment
    command = ["keytool", *jvm, *arguments, word, STORE_PASSWORD]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = x509.SubjectAlternativeName([loopback, x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())
