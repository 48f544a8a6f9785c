"""A key distribution centre of MIT Kerberos for one realm, on the loopback interface."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.embedded.broker_security import KerberosService
from spark_jobs.embedded.process import LOOPBACK, Child, free_ports, port_answers
from tests.harness.shop import wait_until

REALM = "REJOIN.TEST"
_PACKAGES = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
}
# brokers have the name that their address leads back to, as Java's client has it in any case; a
# ticket is accepted for two seconds after its end, not for 300
_CLIENTS = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = true
 rdns = true
 clockskew = 2
 ticket_lifetime = {lifetime_s}s
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
"""
_CENTRE = """\
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
  max_life = {lifetime_s}s
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
"""


@dataclass(frozen=True, slots=True)
class Centre:
    """`lifetime_s` is that of every ticket."""

    folder: Path
    lifetime_s: int

    @property
    def settings(self) -> Path:
        return self.folder / "krb5.conf"

    def environment(self) -> dict[str, str]:
        """For a process with both client libraries, and with tickets of its own."""
        return {
            "KRB5_CONFIG": str(self.settings),
            "KRB5CCNAME": f"FILE:{self.folder}/tickets",
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={self.settings}",
        }

    def keytab(self, principal: str) -> Path:
        """A file with the key of a principal, which is made for it."""
        file = self.folder / f"{principal.replace('/', '_')}.keytab"
        self.admin("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self.admin("kadmin.local", "-r", REALM, "ktadd", "-k", str(file), principal)
        return file

    def service(self) -> KerberosService:
        """What a broker has to know."""
        principal = f"kafka/{socket.gethostbyaddr(LOOPBACK)[0]}@{REALM}"
        return KerberosService(principal, self.keytab(principal), self.settings, self.lifetime_s)

    def last_login(self, principal: str) -> float:
        """When the principal was last given a ticket for its key, in seconds since 1970."""
        lines = (self.folder / "kdc.log").read_text(encoding="utf-8").splitlines()
        issued = [line for line in lines if f", {principal} for krbtgt/" in line]
        found = [re.search(r"AS_REQ .* ISSUE: authtime ([0-9]+)", line) for line in issued]
        return max(float(match[1]) for match in found if match is not None)

    def admin(self, program: str, *arguments: str) -> None:
        subprocess.run(
            self.command(program, *arguments), check=True, capture_output=True, timeout=60
        )

    def command(self, program: str, *arguments: str) -> list[str]:
        own = f"KRB5_KDC_PROFILE={self.folder}/kdc.conf"
        return ["env", own, f"KRB5_CONFIG={self.settings}", str(_path(program)), *arguments]


def missing_program() -> str | None:
    """Why no centre can run here."""
    for program, package in _PACKAGES.items():
        if _path(program) is None:
            return f"{program} is not installed (Debian: {package})"
    return None


@contextmanager
def distribution_centre(folder: Path, lifetime_s: int) -> Iterator[Centre]:
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    values = {"realm": REALM, "host": LOOPBACK, "port": port, "folder": folder}
    for name, text in (("krb5.conf", _CLIENTS), ("kdc.conf", _CENTRE)):
        (folder / name).write_text(text.format(**values, lifetime_s=lifetime_s))
    centre = Centre(folder, lifetime_s)
    centre.admin("kdb5_util", "-r", REALM, "create", "-s", "-P", "of-this-run")
    child = Child(centre.command("krb5kdc", "-n", "-r", REALM), folder / "krb5kdc.log")
    try:
        wait_until(lambda: port_answers(port), child)
        yield centre
    finally:
        child.stop(5.0)


def _path(program: str) -> str | None:
    """Debian keeps most of them where only root looks."""
    return shutil.which(program, path=os.pathsep.join((*os.get_exec_path(), "/usr/sbin")))
