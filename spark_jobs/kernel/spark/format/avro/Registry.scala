package org.apache.spark.sql.rejoin.format.avro

import java.net.URI
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.avro.{AvroRuntimeException, Schema}
import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JInt, JNothing, JValue, MappingException}

import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}
import org.apache.spark.sql.rejoin.run.{ExecutorReports, JvmCounts}

/** Reads schemas by id from a registry, through Confluent's interface or Apicurio's own.
  *
  * An id never changes its meaning, so a schema is kept as long as the JVM lives. An unknown id makes the
  * record bad. A registry that does not answer is called again with growing pauses until the timeout;
  * then the task fails.
  */
final class Registry private (
    urls: Seq[String],
    client: HttpClient,
    authorization: Option[String],
    timeoutMs: Long) {
  private implicit val formats: Formats = DefaultFormats
  private lazy val apicurio = urls.map(Registry.apicurioUrl)
  private val known = new ConcurrentHashMap[String, Schema]

  /** Unknown ids, each with the time (nanoseconds) until which the registry is not called again for it. */
  private val unknown = new ConcurrentHashMap[String, (Long, BadRecord)]

  def byId(id: Long): Schema = found(s"/schemas/ids/$id", confluent(_, s"schema id $id"))

  /** Confluent's ids in headers are GUIDs. */
  def byGuid(guid: String): Schema = found(s"/schemas/guids/$guid", confluent(_, s"schema $guid"))

  /** `kind` is `globalIds` or `contentIds`. */
  def byApicurioId(kind: String, id: Long): Schema = found(s"/ids/$kind/$id", native(_, s"schema $id of $kind"))

  /** Known ids are found without a lock; for others, one task at a time calls the registry. */
  private def found(path: String, load: String => Schema): Schema = {
    val schema = known.get(path)
    if (schema != null) schema else synchronized(loaded(path, load))
  }

  private def loaded(path: String, load: String => Schema): Schema = {
    val absent = unknown.get(path)
    if (absent != null && System.nanoTime() < absent._1) throw absent._2
    if (known.containsKey(path)) known.get(path)
    else
      try {
        val schema = load(path)
        known.put(path, schema)
        schema
      } catch {
        case bad: BadRecord =>
          if (unknown.size >= Registry.MostUnknown) unknown.clear() // random bytes name any number of ids
          unknown.put(path, (System.nanoTime() + Registry.UnknownNanos, bad))
          throw bad
        case e @ (_: JsonProcessingException | _: MappingException) =>
          throw new RegistryException("REGISTRY_FAILED", s"$path: the registry's answer is no schema: ${e.getMessage}")
      }
  }

  private def confluent(path: String, what: String): Schema = {
    val answer = parse(fetch(urls, path, what))
    val kind = (answer \ "schemaType").extractOrElse("AVRO")
    if (kind != "AVRO") throw new BadRecord(Reason.AvroMismatch, s"$what is $kind, not Avro")
    val parser = new Schema.Parser
    parsed(what) {
      parseReferences(parser, answer)
      parser.parse((answer \ "schema").extract[String])
    }
  }

  /** Parses referenced schemas first: the schema uses their types by name. */
  private def parseReferences(parser: Schema.Parser, answer: JValue): Unit =
    (answer \ "references").children.foreach { reference =>
      val name = (reference \ "name").extract[String]
      if (!parser.getTypes.containsKey(name)) {
        val path = s"/subjects/${encoded(reference \ "subject")}/versions/${(reference \ "version").extract[Int]}"
        val referenced = parse(fetch(urls, path, s"referenced schema $name"))
        parseReferences(parser, referenced)
        parser.parse((referenced \ "schema").extract[String])
      }
    }

  /** Apicurio returns the schema's text alone; the references, if it needs any, take another call. */
  private def native(path: String, what: String): Schema = {
    val text = fetch(apicurio, path, what)
    try new Schema.Parser().parse(text)
    catch {
      case _: AvroRuntimeException =>
        val parser = new Schema.Parser
        parsed(what) {
          parseNativeReferences(parser, parse(fetch(apicurio, s"$path/references", what)))
          parser.parse(text)
        }
    }
  }

  private def parseNativeReferences(parser: Schema.Parser, references: JValue): Unit =
    references.children.foreach { reference =>
      val name = (reference \ "name").extract[String]
      if (!parser.getTypes.containsKey(name)) {
        val group = (reference \ "groupId").extractOpt[String].fold("default")(_ => encoded(reference \ "groupId"))
        val version = encoded(reference \ "version")
        val path = s"/groups/$group/artifacts/${encoded(reference \ "artifactId")}/versions/$version"
        val what = s"referenced schema $name"
        parseNativeReferences(parser, parse(fetch(apicurio, s"$path/references", what)))
        parser.parse(fetch(apicurio, path, what))
      }
    }

  private def encoded(text: JValue): String =
    java.net.URLEncoder.encode(text.extract[String], UTF_8).replace("+", "%20")

  private def parsed(what: String)(parse: => Schema): Schema =
    try parse
    catch { case e: AvroRuntimeException => throw new BadRecord(Reason.AvroMismatch, s"$what: ${e.getMessage}") }

  private def fetch(urls: Seq[String], path: String, what: String): String = {
    var answer = attempt(urls, path, what)
    if (answer.isLeft) {
      val deadline = System.nanoTime() + timeoutMs * 1000000
      var pause = 100L
      RegistryWaits.begin(urls.head)
      try
        while (answer.isLeft && System.nanoTime() < deadline) {
          Thread.sleep(pause)
          pause = math.min(pause * 2, 5000)
          answer = attempt(urls, path, what)
        }
      finally RegistryWaits.end(urls.head)
    }
    answer.fold(
      problem =>
        throw new RegistryException("REGISTRY_UNREACHABLE", s"$what: $problem, after ${timeoutMs / 1000} s of trying"),
      identity)
  }

  /** Calls the registries in turn; Left with the problem if another try may succeed. */
  private def attempt(urls: Seq[String], path: String, what: String): Either[String, String] =
    urls.foldLeft[Either[String, String]](Left("no registry")) { (answer, url) =>
      if (answer.isRight) answer
      else counted(judge(url, path, what, client.send(request(url + path), HttpResponse.BodyHandlers.ofString())), url)
    }

  private def counted(call: => Either[String, String], url: String): Either[String, String] = {
    JvmCounts.add("registry", "calls")
    val answer =
      try call
      catch {
        case e: java.io.IOException => Left(s"the registry at $url does not answer: $e")
        case refused: RegistryException =>
          JvmCounts.add("registry", "failures")
          throw refused
      }
    if (answer.isLeft) JvmCounts.add("registry", "failures")
    answer
  }

  private def judge(
      url: String,
      path: String,
      what: String,
      response: HttpResponse[String]): Either[String, String] =
    response.statusCode match {
      case 200 => Right(response.body)
      case 404 if Registry.isUnknownId(response.body) =>
        throw new BadRecord(Reason.AvroUnknownId, s"$what is not at the registry $url")
      case 401 | 403 =>
        throw new RegistryException(
          "REGISTRY_REFUSED",
          s"$what: the registry at $url refuses access (${response.statusCode})")
      case status @ (400 | 404 | 405 | 406) =>
        throw new RegistryException("REGISTRY_FAILED", s"$what: there is no $path at the registry $url ($status)")
      case status => Left(s"the registry at $url answers $status")
    }

  private def request(url: String): HttpRequest = {
    val request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(10))
    request.header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
    authorization.foreach(request.header("Authorization", _))
    request.build()
  }
}

/** The registry failed: the record is not bad, the task fails with a code of docs/errors.md. */
final class RegistryException(code: String, message: String) extends RuntimeException(s"[$code] $message")

/** Registries that tasks wait for, and since when (milliseconds since 1970). */
object RegistryWaits {
  private val waiting = new ConcurrentHashMap[String, (Long, Int)]

  def begin(url: String): Unit =
    waiting.merge(url, (System.currentTimeMillis(), 1), (old, _) => (old._1, old._2 + 1))

  def end(url: String): Unit =
    waiting.computeIfPresent(url, (_, old) => if (old._2 == 1) null else (old._1, old._2 - 1))

  /** Those of this JVM's tasks. */
  def own: Map[String, Long] = waiting.asScala.toMap.map { case (url, (since, _)) => url -> since }

  /** `{url: since}`, of this JVM and the executors. */
  def json: String = {
    import org.json4s.JsonDSL._
    import org.json4s.jackson.JsonMethods.{compact, render}
    compact(render((own +: ExecutorReports.all.map(_.waits)).flatten.groupMapReduce(_._1)(_._2)(_ min _)))
  }
}

object Registry {
  final val Timeout = "rejoin.registry.timeout-ms"
  private final val DefaultTimeoutMs = 300000L
  private val MostUnknown = 1000
  private val UnknownNanos = 10L * 1000 * 1000 * 1000
  private val registries = new ConcurrentHashMap[Map[String, String], Registry]

  /** The registry that a format's options describe; one per JVM. */
  def of(options: Map[String, String]): Registry =
    registries.computeIfAbsent(options - "schema" - "subject" - "schema-id" - AvroSchemaIds.Option, open(_))

  /** The address of Apicurio's own interface, next to the one that it has for Confluent's clients. */
  private def apicurioUrl(url: String): String =
    if (url.contains("/apis/registry/")) url else url.replaceFirst("/apis/ccompat/.*$", "") + "/apis/registry/v2"

  /** Whether a 404 means that the id is unknown, and not that the address is wrong. */
  private def isUnknownId(body: String): Boolean =
    try {
      val answer = parse(body)
      (answer \ "error_code") match {
        case JInt(code) if code > 40000 => true
        case JInt(_) => (answer \ "name") != JNothing
        case _ => false
      }
    } catch { case _: Exception => false }

  private def open(options: Map[String, String]): Registry = {
    val access = new RegistryAccess(options)
    val timeoutMs = options.get(Timeout).fold(DefaultTimeoutMs)(_.toLong)
    new Registry(access.urls, access.client(), access.authorization, timeoutMs)
  }
}
