"""Adds TLS, SASL and an authorizer to the embedded broker, for tests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Protocol: TypeAlias = Literal["SASL_SSL", "SASL_PLAINTEXT", "SSL"]

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Whose signed tokens the broker accepts, and where the issuer's public keys are.

    A client logs in again before its token has expired, or after `session_s`; else it is cut off.
    """

    name: str
    keys_url: str
    audience: str
    session_s: int


@dataclass(frozen=True, slots=True)
class KerberosService:
    """The broker's own principal and its key; a client has to show a new ticket after `session_s`.

    `settings` is the broker's krb5.conf.
    """

    principal: str
    keytab: Path
    settings: Path
    session_s: int


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """Who may connect to the listener for clients, and how.

    `identity` and `trusted` are PEM files: the broker's key with its certificates, and the
    certificates that it trusts. `users` maps names to passwords for PLAIN and SCRAM; OAUTHBEARER
    accepts the tokens that an `issuer` has signed, without one unsigned tokens of any user; GSSAPI
    needs `kerberos`. With SSL, clients need a certificate. `admin` is the broker's own user: a key
    of `users`, or the subject of its certificate. Users that are no super users need ACLs.
    """

    protocol: Protocol
    admin: str
    identity: Path | None = None
    trusted: Path | None = None
    users: Mapping[str, str] = field(default_factory=dict)
    super_users: tuple[str, ...] = ()
    issuer: TokenIssuer | None = None
    kerberos: KerberosService | None = None

    def java_options(self) -> list[str]:
        """The addresses that the broker may read keys from, and the realm that it is in."""
        options = []
        if self.issuer is not None:
            allowed = self.issuer.keys_url
            options.append(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}")
        if self.kerberos is not None:
            options.append(f"-Djava.security.krb5.conf={self.kerberos.settings}")
        return options

    def settings(self) -> str:
        """Lines for `server.properties`; the listener for clients is called CLIENT."""
        # connections to the controller's listener, made by the broker, are ANONYMOUS
        supers = ("ANONYMOUS", self.admin, *self.super_users)
        lines = [
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            f"super.users={';'.join(f'User:{name}' for name in supers)}",
        ]
        if self.protocol != "SASL_PLAINTEXT":
            lines += [f"ssl.keystore.type=PEM\nssl.keystore.location={self.identity}"]
            lines += [f"ssl.truststore.type=PEM\nssl.truststore.location={self.trusted}"]
        if self.protocol == "SSL":
            lines.append("ssl.client.auth=required")
        else:
            lines += self._sasl()
        return "\n".join(lines) + "\n"

    def scram_arguments(self) -> Iterator[str]:
        """Arguments of Kafka's storage tool that create the users."""
        for name, password in self.users.items():
            for mechanism in _SCRAM:
                yield f"--add-scram={mechanism}=[name={name},password={password}]"

    def client_config(self) -> dict[str, str]:
        """librdkafka's configuration for the broker's own user."""
        config: dict[str, str] = {"security.protocol": self.protocol}
        if self.protocol != "SASL_PLAINTEXT":
            config["ssl.ca.location"] = str(self.trusted)
        if self.protocol == "SSL":
            own = str(self.identity)
            return config | {"ssl.certificate.location": own, "ssl.key.location": own}
        user = {"sasl.username": self.admin, "sasl.password": self.users[self.admin]}
        return config | {"sasl.mechanism": "PLAIN"} | user

    def _sasl(self) -> list[str]:
        tickets = () if self.kerberos is None else ("GSSAPI",)
        mechanisms = ("PLAIN", *_SCRAM, "OAUTHBEARER", *tickets)
        own = f'username="{self.admin}" password="{self.users[self.admin]}"'
        all_users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        entries = {
            "plain": f"{_MODULES}.plain.PlainLoginModule required {own} {all_users};",
            "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
            f'unsecuredLoginStringClaim_sub="{self.admin}";',
            **{m.lower(): f"{_MODULES}.scram.ScramLoginModule required;" for m in _SCRAM},
        }
        return [
            f"listener.name.client.sasl.enabled.mechanisms={','.join(mechanisms)}",
            "sasl.mechanism.inter.broker.protocol=PLAIN",
            *(f"listener.name.client.{m}.sasl.jaas.config={e}" for m, e in entries.items()),
            *self._signed_tokens(),
            *self._tickets(),
        ]

    def _tickets(self) -> list[str]:
        if self.kerberos is None:
            return []
        key = f'keyTab="{self.kerberos.keytab}" principal="{self.kerberos.principal}"'
        return [
            f"sasl.kerberos.service.name={self.kerberos.principal.partition('/')[0]}",
            "listener.name.client.gssapi.sasl.jaas.config=com.sun.security.auth.module."
            f"Krb5LoginModule required useKeyTab=true storeKey=true {key};",
            "listener.name.client.gssapi.connections.max.reauth.ms="
            f"{self.kerberos.session_s * 1000}",
        ]

    def _signed_tokens(self) -> list[str]:
        if self.issuer is None:
            return []
        of_listener = "listener.name.client.oauthbearer.sasl"
        validator = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        return [
            f"{of_listener}.server.callback.handler.class={validator}",
            f"{of_listener}.oauthbearer.jwks.endpoint.url={self.issuer.keys_url}",
            f"{of_listener}.oauthbearer.expected.audience={self.issuer.audience}",
            f"{of_listener}.oauthbearer.expected.issuer={self.issuer.name}",
            "listener.name.client.oauthbearer.connections.max.reauth.ms="
            f"{self.issuer.session_s * 1000}",
        ]
