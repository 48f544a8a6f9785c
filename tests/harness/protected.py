"""A protected broker: users, certificates, an authorizer, and ACLs given and taken back."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from spark_jobs.access.acls import Need
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.broker_security import (
    BrokerSecurity,
    KerberosService,
    Protocol,
    TokenIssuer,
)
from tests.harness.certificates import Authority
from tests.harness.tokens import TokenEndpoint

ADMIN_PASSWORD = "adm-Pw-55e0"  # noqa: S105
USER = "shop"
USER_PASSWORD = "usr-Pw-7c21"  # noqa: S105
_KAFKA = "org.apache.kafka.common.security"
_TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def protected_broker(
    folder: Path,
    protocol: Protocol,
    issuer: TokenIssuer | None = None,
    kerberos: KerberosService | None = None,
) -> tuple[Broker, Authority]:
    """Not started. Its super user is `admin`, or the certificate CN=admin."""
    authority = Authority(folder / "ca")
    users = {"admin": ADMIN_PASSWORD, USER: USER_PASSWORD}
    security = BrokerSecurity(
        protocol,
        admin="CN=admin" if protocol == "SSL" else "admin",
        identity=authority.keystore(authority.sign("admin"), "admin", "PEM"),
        trusted=authority.truststore("PEM"),
        users={} if protocol == "SSL" else users,
        issuer=issuer,
        kerberos=kerberos,
    )
    return Broker(folder / "data", security=security), authority


def login(mechanism: str, password: str) -> dict[str, str]:
    """Java's properties that make us `USER`; `password` is what stands between the quotes."""
    entry = {
        "PLAIN": f'{_KAFKA}.plain.PlainLoginModule required username="{USER}" '
        f'password="{password}";',
        "OAUTHBEARER": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule required "
        f'unsecuredLoginStringClaim_sub="{USER}";',
    }
    scram = f'{_KAFKA}.scram.ScramLoginModule required username="{USER}" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": entry.get(mechanism, scram)}


def signed_login(endpoint: TokenEndpoint, secret: str) -> dict[str, str]:
    """Java's properties that make us `USER` by a token of the endpoint."""
    handler = f"{_KAFKA}.oauthbearer.OAuthBearerLoginCallbackHandler"
    entry = f'clientId="{USER}" clientSecret="{secret}" scope="topics"'
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.oauthbearer.token.endpoint.url": endpoint.token_url,
        "sasl.jaas.config": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule required {entry};",
    }


def create_topics(broker: Broker, *names: str) -> None:
    admin = AdminClient({**broker.admin_config()})
    for future in admin.create_topics([NewTopic(n, 1) for n in names]).values():
        future.result(30)


def grant(broker: Broker, needs: Iterable[Need]) -> None:
    """To `USER`, and wait until they are in force."""
    admin = AdminClient({**broker.admin_config()})
    for future in admin.create_acls([_binding(need) for need in dict.fromkeys(needs)]).values():
        future.result(30)
    time.sleep(0.3)  # the authorizer follows the metadata log


@contextmanager
def without(broker: Broker, need: Need) -> Iterator[None]:
    """Take one ACL back for a while."""
    admin = AdminClient({**broker.admin_config()})
    b = _binding(need)
    exactly = AclBindingFilter(
        b.restype, b.name, b.resource_pattern_type, b.principal, b.host, b.operation,
        b.permission_type,
    )  # fmt: skip
    for future in admin.delete_acls([exactly]).values():
        assert len(future.result(30)) == 1
    time.sleep(0.3)
    yield
    grant(broker, [need])


def _binding(need: Need) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if need.prefixed else ResourcePatternType.LITERAL
    operation = AclOperation[need.operation.upper()]
    return AclBinding(
        _TYPES[need.resource], need.name, pattern, f"User:{USER}", "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip
