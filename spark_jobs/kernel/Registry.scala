package org.apache.spark.sql.rejoin

import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.KeyStore
import java.time.Duration
import java.util.Base64
import java.util.concurrent.ConcurrentHashMap
import javax.net.ssl.{KeyManagerFactory, SSLContext, TrustManagerFactory}

import org.apache.avro.{Schema, SchemaParseException}
import org.json4s.{DefaultFormats, Formats, JValue}
import org.json4s.jackson.JsonMethods.parse

/** Schemas by id from a Confluent-compatible registry.
  *
  * Ids never change their meaning, so what was found is kept as long as the JVM lives. An unknown
  * id is the record's fault; a registry that does not answer is nobody's: it is asked again with
  * growing pauses, and in the end the task fails.
  */
final class Registry private (
    urls: Seq[String],
    client: HttpClient,
    authorization: Option[String]) {
  private implicit val formats: Formats = DefaultFormats
  private val known = new ConcurrentHashMap[Int, Schema]

  /** Unknown ids and until when (nanoseconds) nobody need ask again. */
  private val unknown = new ConcurrentHashMap[Int, (Long, BadRecord)]

  def schema(id: Int): Schema = {
    val found = known.get(id)
    if (found != null) found else synchronized(load(id))
  }

  private def load(id: Int): Schema = {
    val absent = unknown.get(id)
    if (absent != null && System.nanoTime() < absent._1) throw absent._2
    if (known.containsKey(id)) known.get(id)
    else
      try {
        val schema = parseSchema(s"id $id", ask(s"/schemas/ids/$id", s"schema id $id"))
        known.put(id, schema)
        schema
      } catch {
        case bad: BadRecord =>
          unknown.put(id, (System.nanoTime() + Registry.UnknownNanos, bad))
          throw bad
      }
  }

  /** References come first, as named types that the schema may use. */
  private def parseSchema(what: String, answer: JValue): Schema = {
    val kind = (answer \ "schemaType").extractOrElse("AVRO")
    if (kind != "AVRO")
      throw new BadRecord(Reason.AvroMismatch, s"schema of $what is $kind, not Avro")
    val parser = new Schema.Parser
    try {
      parseReferences(parser, answer)
      parser.parse((answer \ "schema").extract[String])
    } catch {
      case e: SchemaParseException =>
        throw new BadRecord(Reason.AvroMismatch, s"schema of $what: ${e.getMessage}")
    }
  }

  private def parseReferences(parser: Schema.Parser, answer: JValue): Unit =
    (answer \ "references").children.foreach { reference =>
      val name = (reference \ "name").extract[String]
      if (!parser.getTypes.containsKey(name)) {
        val subject = java.net.URLEncoder.encode((reference \ "subject").extract[String], UTF_8)
        val version = (reference \ "version").extract[Int]
        val referenced = ask(s"/subjects/$subject/versions/$version", s"referenced schema $name")
        parseReferences(parser, referenced)
        parser.parse((referenced \ "schema").extract[String])
      }
    }

  private def ask(path: String, what: String): JValue = {
    val deadline = System.nanoTime() + Registry.PatienceNanos
    var pause = 100L
    var answer = attempt(path, what)
    while (answer.isLeft && System.nanoTime() < deadline) {
      Thread.sleep(pause)
      pause = math.min(pause * 2, 5000)
      answer = attempt(path, what)
    }
    answer.fold(problem => throw new RegistryException(s"$what: $problem"), identity)
  }

  /** Left where it is worth another try. */
  private def attempt(path: String, what: String): Either[String, JValue] =
    urls.foldLeft[Either[String, JValue]](Left("no registry")) { (answer, url) =>
      if (answer.isRight) answer
      else
        try judge(url, what, client.send(request(url + path), HttpResponse.BodyHandlers.ofString()))
        catch { case e: java.io.IOException => Left(s"the registry at $url does not answer: $e") }
    }

  private def judge(
      url: String,
      what: String,
      response: HttpResponse[String]): Either[String, JValue] =
    response.statusCode match {
      case 200 => Right(parse(response.body))
      case 404 => throw new BadRecord(Reason.AvroUnknownId, s"$what is not at the registry $url")
      case 401 | 403 =>
        throw new RegistryException(
          s"$what: the registry at $url refuses access (${response.statusCode})")
      case status => Left(s"the registry at $url answers $status")
    }

  private def request(url: String): HttpRequest = {
    val request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(10))
    request.header("Accept", "application/vnd.schemaregistry.v1+json")
    authorization.foreach(request.header("Authorization", _))
    request.build()
  }
}

/** The registry failed, not the record: the task fails and may be tried again. */
final class RegistryException(message: String) extends RuntimeException(message)

object Registry {
  private val PatienceNanos = 60L * 1000 * 1000 * 1000
  private val UnknownNanos = 10L * 1000 * 1000 * 1000
  private val registries = new ConcurrentHashMap[Map[String, String], Registry]

  /** The registry that a format's options describe; one per JVM. */
  def of(options: Map[String, String]): Registry =
    registries.computeIfAbsent(options - "schema" - "subject" - "schema-id", open(_))

  private def open(options: Map[String, String]): Registry = {
    val urls = options("url").split(",").toSeq.map(_.trim.stripSuffix("/"))
    val client = HttpClient
      .newBuilder()
      .version(HttpClient.Version.HTTP_1_1)
      .connectTimeout(Duration.ofSeconds(5))
    sslContext(options).foreach(client.sslContext)
    new Registry(urls.map(withoutUser), client.build(), authorization(options, urls.head))
  }

  private def authorization(options: Map[String, String], url: String): Option[String] = {
    val inUrl = Option.when(options.get("basic-auth.credentials-source").contains("URL"))(
      URI.create(url).getUserInfo)
    val basic = options.get("basic-auth.user-info").orElse(inUrl).map { user =>
      s"Basic ${Base64.getEncoder.encodeToString(user.getBytes(UTF_8))}"
    }
    basic.orElse(options.get("bearer-auth.token").map(token => s"Bearer $token"))
  }

  private def withoutUser(url: String): String = url.replaceFirst("//[^/@]*@", "//")

  private def sslContext(options: Map[String, String]): Option[SSLContext] = {
    def store(kind: String): Option[(KeyStore, Array[Char])] =
      options.get(s"ssl.$kind.location").map { path =>
        val password = options.getOrElse(s"ssl.$kind.password", "").toCharArray
        (KeyStore.getInstance(new java.io.File(path), password), password)
      }
    val trusted = store("truststore").map { case (store, _) =>
      val factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
      factory.init(store)
      factory.getTrustManagers
    }
    val own = store("keystore").map { case (store, password) =>
      val factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm)
      factory.init(store, password)
      factory.getKeyManagers
    }
    Option.when(trusted.isDefined || own.isDefined) {
      val context = SSLContext.getInstance("TLS")
      context.init(own.orNull, trusted.orNull, null)
      context
    }
  }
}
