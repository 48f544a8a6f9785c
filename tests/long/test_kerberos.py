"""GSSAPI with a real key distribution centre: tickets end while a job runs, in both libraries."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from spark_jobs.embedded.process import Child
from tests.harness.kerberos import REALM, Centre, distribution_centre, missing_program
from tests.harness.kerberos_client import kerberos_client, missing_package
from tests.harness.login_job import LoginJob
from tests.harness.protected import USER, protected_broker
from tests.harness.shop import wait_until

PRINCIPAL = f"{USER}@{REALM}"
LIFETIME_S = 20


@dataclass(slots=True)
class Stage:
    job: LoginJob
    centre: Centre
    keytab: Path

    def login(self, principal: str, keytab: Path) -> dict[str, str]:
        return {
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.min.time.before.relogin": "5000",
            "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
            f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}";',
        }

    def failure(self, principal: str, keytab: Path) -> tuple[int, str]:
        """What the job ends with; a ticket that is there already would let it in as its user."""
        empty = {"KRB5CCNAME": f"FILE:{self.job.folder}/none"}
        job = replace(self.job, environment={**self.job.environment, **empty})
        run = job.run(self.login(principal, keytab))
        ended = subprocess.run(run, capture_output=True, text=True, timeout=200, check=False)
        return ended.returncode, ended.stderr


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if missing := missing_program() or missing_package():
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("kerberos")
    with distribution_centre(folder / "centre", LIFETIME_S) as centre:
        broker, authority = protected_broker(
            folder / "broker", "SASL_SSL", kerberos=centre.service()
        )
        environment = {**centre.environment(), "PYTHONPATH": str(kerberos_client())}
        with broker:
            job = LoginJob(folder, broker, authority.truststore("PEM"), environment)
            job.prepare()
            yield Stage(job, centre, centre.keytab(PRINCIPAL))


@pytest.mark.timeout(600)
def test_a_job_outlives_its_tickets(stage: Stage) -> None:
    stage.job.send(range(5))
    run = stage.job.run(stage.login(PRINCIPAL, stage.keytab))
    child = Child(run, stage.job.folder / "run.log")
    try:
        wait_until(lambda: len(stage.job.results()) == 5, child)
        # tickets of both libraries that were valid by now have ended, and new ones are there
        expired = stage.centre.last_login(PRINCIPAL) + 2 * LIFETIME_S
        wait_until(lambda: stage.centre.last_login(PRINCIPAL) > expired, child)
        stage.job.send(range(3, 8))
        wait_until(lambda: len(stage.job.results()) == 8, child)
    finally:
        child.stop(60.0)
    assert child.exit_code == 0, child.log_tail()
    assert stage.job.results() == {0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 1, 6: 1, 7: 1}


def test_a_wrong_principal_is_told_at_the_start(stage: Stage) -> None:
    code, told = stage.failure(f"nobody@{REALM}", stage.keytab)
    assert code == 3
    assert "Keytab contains no suitable keys for nobody" in told, told
    assert "KAFKA_LOGIN_FAILED" in told, told


def test_a_missing_keytab_is_told_at_the_start(stage: Stage) -> None:
    code, told = stage.failure(PRINCIPAL, stage.job.folder / "absent.keytab")
    assert code == 2
    assert "absent.keytab cannot be read" in told, told
