"""OAUTHBEARER with a real token endpoint: signed tokens, which expire while a job runs."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spark_jobs.embedded.process import Child
from tests.harness.login_job import LoginJob
from tests.harness.protected import USER, protected_broker, signed_login
from tests.harness.shop import wait_until
from tests.harness.tokens import TokenEndpoint, token_endpoint
from tests.streaming.test_security import BOTH, Client

SECRET = "cl-Pw-90aa"  # noqa: S105
LIFETIME_S = 20


@dataclass(slots=True)
class Stage:
    job: LoginJob
    endpoint: TokenEndpoint

    def login(self, secret: str = SECRET) -> dict[str, str]:
        file = self.job.folder / f"secret-{secret}"
        file.write_text(secret + "\n")
        return signed_login(self.endpoint, f"${{file:{file}}}")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("tokens")
    with token_endpoint({USER: SECRET}, LIFETIME_S) as endpoint:
        broker, authority = protected_broker(folder / "broker", "SASL_SSL", endpoint.issuer())
        with broker:
            job = LoginJob(folder, broker, authority.truststore("PEM"))
            job.prepare()
            yield Stage(job, endpoint)


@BOTH
def test_signed_tokens(stage: Stage, client: Client) -> None:
    assert client(stage.job.properties(stage.login()), "orders") == "orders"


@pytest.mark.timeout(600)
def test_a_job_outlives_its_tokens(stage: Stage) -> None:
    stage.job.send(range(5))
    child = Child(stage.job.run(stage.login()), stage.job.folder / "run.log")
    try:
        wait_until(lambda: len(stage.job.results()) == 5, child)
        # by then every token that the job has got so far is worthless, and it has asked for more
        expired = stage.endpoint.issued_at[-1] + LIFETIME_S
        wait_until(lambda: stage.endpoint.issued_at[-1] > expired, child)
        stage.job.send(range(3, 8))
        wait_until(lambda: len(stage.job.results()) == 8, child)
    finally:
        child.stop(60.0)
    assert child.exit_code == 0, child.log_tail()
    assert stage.job.results() == {0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 1, 6: 1, 7: 1}
    checkpoint = stage.job.folder / "checkpoint"
    written = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in child.log_path.read_text()


def test_a_wrong_secret_is_told_at_the_start(stage: Stage) -> None:
    run = stage.job.run(stage.login("wrong"))
    ended = subprocess.run(run, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 3
    assert "KAFKA_LOGIN_FAILED" in ended.stderr, ended.stderr
