"""Properties of Kafka's clients: the names there are, and what cannot be used here.

A table's properties configure two libraries: Java's client reads and writes the records, librdkafka
looks up topics and offsets. Both have to reach the same broker as the same principal, so a property
of the connection that one of them does not have is refused.
"""

from spark_jobs.options.jaas import JaasEntry, parse_jaas
from spark_jobs.options.kinds import is_reference

# properties of the connection, which both libraries get (spark_jobs/access/librdkafka.py)
_CONNECTION = """
    bootstrap.servers client.dns.lookup client.id connections.max.idle.ms metadata.max.age.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retry.backoff.max.ms retry.backoff.ms sasl.jaas.config
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.login.callback.handler.class sasl.mechanism sasl.oauthbearer.token.endpoint.url
    security.protocol send.buffer.bytes socket.connection.setup.timeout.ms
    ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type
"""
# properties that only Java's client gets: reading and writing records, timing, metrics
_JAVA_ONLY = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter
    auto.offset.reset batch.size buffer.memory check.crcs client.rack compression.gzip.level
    compression.lz4.level compression.type compression.zstd.level default.api.timeout.ms
    delivery.timeout.ms enable.idempotence enable.metrics.push exclude.internal.topics
    fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
    group.remote.assignor heartbeat.interval.ms linger.ms max.block.ms
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records max.request.size metadata.max.idle.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.ignore.keys retries
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    session.timeout.ms socket.connection.setup.timeout.max.ms transaction.timeout.ms
"""
CONNECTION = frozenset(_CONNECTION.split())
JAVA_ONLY = frozenset(_JAVA_ONLY.split())
_TLS_POLICY = "librdkafka does not have it: restrict protocols and ciphers at the broker's listener"
_TLS_CLASSES = "librdkafka cannot load Java classes: leave it out"
_VALIDATION = "it is for brokers, which check tokens: leave it out"
# properties of Java's client that are refused, and what to do instead
REFUSED: dict[str, str] = {
    **dict.fromkeys(("ssl.cipher.suites", "ssl.enabled.protocols", "ssl.protocol"), _TLS_POLICY),
    **dict.fromkeys(
        (
            "security.providers", "ssl.engine.factory.class", "ssl.keymanager.algorithm",
            "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
            "sasl.login.class", "sasl.client.callback.handler.class",
        ),
        _TLS_CLASSES,
    ),
    **dict.fromkeys(
        (
            "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
            "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            "sasl.oauthbearer.jwks.endpoint.url",
        ),
        _VALIDATION,
    ),
    "sasl.kerberos.kinit.cmd": "librdkafka would run it as a shell command: leave it out, and have "
    "kinit on the PATH",
    "sasl.oauthbearer.header.urlencode": "librdkafka does not have it: leave it out",
    "sasl.oauthbearer.scope.claim.name": "librdkafka does not have it: leave it out",
    "sasl.oauthbearer.sub.claim.name": "librdkafka does not have it: leave it out",
}  # fmt: skip

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", "GSSAPI")
OAUTH_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
CLIENT_CREDENTIALS = (
    f"{OAUTH_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{OAUTH_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
UNSECURED = f"{OAUTH_PACKAGE}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_CHOICES: dict[str, tuple[str, ...]] = {
    "security.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl.mechanism": MECHANISMS,
    "sasl.login.callback.handler.class": (*CLIENT_CREDENTIALS, UNSECURED),
    "ssl.endpoint.identification.algorithm": ("https", ""),
    "ssl.keystore.type": ("JKS", "PKCS12", "PEM"),
    "ssl.truststore.type": ("JKS", "PKCS12", "PEM"),
}
_FOREIGN_MECHANISMS = {
    "AWS_MSK_IAM": "it needs Amazon's login module for Java and signed tokens for librdkafka: use "
    "SCRAM or mutual TLS, which MSK has too",
}
_MODULES = {
    "Krb5LoginModule": (
        "useKeyTab", "keyTab", "principal", "storeKey", "doNotPrompt", "refreshKrb5Config",
    ),
    "PlainLoginModule": ("username", "password"),
    "ScramLoginModule": ("username", "password"),
    "OAuthBearerLoginModule": (
        "clientId", "clientSecret", "scope", "unsecuredLoginStringClaim_sub",
        "unsecuredLoginListClaim_scope", "unsecuredLoginLifetimeSeconds",
    ),
}  # fmt: skip


def value_problem(name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with a property's value, and a hint; a value that may be secret is not shown.

    A reference is accepted: its value is checked when the job starts.
    """
    if name == "sasl.jaas.config":
        if value.strip().startswith("${"):
            return None
        entry = parse_jaas(value)
        return _entry_problem(entry) if entry else _NO_ENTRY
    choices = _CHOICES.get(name)
    if choices is None or is_reference(value) or value in choices:
        return None
    if name == "sasl.mechanism" and value in _FOREIGN_MECHANISMS:
        return f"SASL mechanism {value} is not supported", _FOREIGN_MECHANISMS[value]
    return f"'{value}' is not valid for Kafka property '{name}'", f"use {' or '.join(choices)}"


_NO_ENTRY = (
    "'sasl.jaas.config' is not a JAAS entry",
    "write it as 'org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="..." password="${file:...}";\'',
)


def _entry_problem(entry: JaasEntry) -> tuple[str, str] | None:
    options = _MODULES.get(entry.module)
    if options is None:
        known = " or ".join(_MODULES)
        return f"login module {entry.module} is not supported", f"use {known}"
    for name in entry.options:
        if name not in options and not _is_extension(entry, name):
            known = ", ".join(options)
            return f"{entry.module} with '{name}' is not supported", f"use one of {known}"
    return None


def _is_extension(entry: JaasEntry, name: str) -> bool:
    return entry.module == "OAuthBearerLoginModule" and name.startswith("extension_")


def client_properties(text: str) -> dict[str, str]:
    """The properties of a file of `name=value` lines, as Kafka's own commands take it.

    >>> client_properties("# login\\nsecurity.protocol = SSL")
    {'security.protocol': 'SSL'}
    """
    given: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith("#"):
            given[name.strip()] = value.strip()
    return given
