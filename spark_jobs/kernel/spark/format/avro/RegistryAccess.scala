package org.apache.spark.sql.rejoin.format.avro

import java.net.URI
import java.net.http.HttpClient
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.security.KeyStore
import java.time.Duration
import java.util
import java.util.Base64
import javax.net.ssl.{KeyManager, KeyManagerFactory, SSLContext, TrustManager, TrustManagerFactory}

import org.apache.kafka.common.config.SslConfigs
import org.apache.kafka.common.config.types.Password
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory

import org.apache.spark.sql.rejoin.run.References

/** TLS and credentials for a schema registry, from the options of Flink's avro-confluent.
  *
  * Key and trust stores are JKS, PKCS12 or PEM, recognised by their content. Kafka's client reads them, so
  * that a store works for registries as it does for brokers.
  *
  * @param unresolved
  *   the format's options, in which references to secrets are not resolved yet
  */
final class RegistryAccess(unresolved: Map[String, String]) {
  private val options = References.resolveAll(unresolved)
  private val addresses = options("url").split(",").toSeq.map(_.trim.stripSuffix("/"))

  /** The addresses without user and password. */
  val urls: Seq[String] = addresses.map(_.replaceFirst("//[^/@]*@", "//"))

  val authorization: Option[String] = {
    val inUrl = Option.when(options.get("basic-auth.credentials-source").contains("URL"))(
      URI.create(addresses.head).getUserInfo)
    val basic = options.get("basic-auth.user-info").orElse(inUrl).map { user =>
      s"Basic ${Base64.getEncoder.encodeToString(user.getBytes(UTF_8))}"
    }
    basic.orElse(options.get("bearer-auth.token").map(token => s"Bearer $token"))
  }

  def client(): HttpClient = {
    val builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5))
    if (options.contains("ssl.truststore.location") || options.contains("ssl.keystore.location"))
      builder.sslContext(sslContext())
    builder.build()
  }

  private def sslContext(): SSLContext = {
    val stores = new DefaultSslEngineFactory
    try {
      stores.configure(storeOptions)
      val context = SSLContext.getInstance("TLS")
      context.init(own(stores.keystore), trusted(stores.truststore), null)
      context
    } finally stores.close()
  }

  private def storeOptions: util.Map[String, Object] = {
    val found = new util.HashMap[String, Object]
    found.put(SslConfigs.SSL_PROTOCOL_CONFIG, SslConfigs.DEFAULT_SSL_PROTOCOL)
    Seq("truststore", "keystore").foreach { store =>
      options.get(s"ssl.$store.location").foreach { path =>
        val kind = RegistryAccess.kind(path)
        found.put(s"ssl.$store.location", path)
        found.put(s"ssl.$store.type", kind)
        // a PEM file has a password for the key only
        val named =
          if (kind != "PEM") Some(s"ssl.$store.password") else Option.when(store == "keystore")("ssl.key.password")
        for (name <- named; password <- options.get(s"ssl.$store.password")) found.put(name, new Password(password))
      }
    }
    found
  }

  private def own(store: KeyStore): Array[KeyManager] =
    if (store == null) null
    else {
      val factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm)
      factory.init(store, options.get("ssl.keystore.password").map(_.toCharArray).orNull)
      factory.getKeyManagers
    }

  private def trusted(store: KeyStore): Array[TrustManager] =
    if (store == null) null
    else {
      val factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
      factory.init(store)
      factory.getTrustManagers
    }
}

object RegistryAccess {
  private val JksMagic = Seq(0xfe, 0xed, 0xfe, 0xed).map(_.toByte)

  private def kind(path: String): String = {
    val content = Files.readAllBytes(Path.of(path))
    if (content.startsWith(JksMagic)) "JKS"
    else if (new String(content, UTF_8).contains("-----BEGIN ")) "PEM"
    else "PKCS12"
  }
}
