package org.apache.spark.sql.rejoin.format.debezium

import java.util

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonParser
import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.exc.StreamReadException
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.json.{Json, JsonFields, JsonOptions}
import org.apache.spark.sql.rejoin.format.{FieldTarget, RowDecoder, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** A type of Kafka Connect, as its JsonConverter writes it beside each payload.
  *
  * @param kind
  *   `struct`, `array`, `map`, `int32`, `bytes`, ...
  * @param name
  *   what the values mean, such as `io.debezium.time.Date`; empty for plain values
  * @param element
  *   type of an array's elements or of a map's values, else null
  */
private[rejoin] final case class ConnectType(
    kind: String,
    name: String,
    parameters: Map[String, String],
    fields: Map[String, ConnectType],
    element: ConnectType) {

  def parameter(key: String, otherwise: Int): Int =
    parameters.get(key).flatMap(_.toIntOption).getOrElse(otherwise)
}

private[rejoin] object ConnectType {

  /** Reads `{"type": .., "name": .., "fields": [..]}`. */
  def parse(node: JsonNode): ConnectType = {
    val kind = node.path("type").asText("")
    if (kind.isEmpty) refuse("a type without 'type'")
    val element = kind match {
      case "array" => parse(node.path("items"))
      case "map" => parse(node.path("values"))
      case _ => null
    }
    val fields = node.path("fields").elements.asScala.map(f => f.path("field").asText("") -> parse(f)).toMap
    val parameters = node.path("parameters").properties.asScala.map(p => p.getKey -> p.getValue.asText("")).toMap
    ConnectType(kind, node.path("name").asText(""), parameters, fields, element)
  }

  private def refuse(message: String): Nothing =
    throw new BadRecord(Reason.ConnectSchema, s"not a schema of Kafka Connect: $message")
}

/** Reads the payload of `{"schema": .., "payload": ..}`.
  *
  * Most records have the same schema text: it is not parsed again in a record whose bytes up to the
  * payload are those of an earlier record. The last few texts are kept.
  *
  * @param compile
  *   makes the payload's reader from its schema, once for each text
  */
private[rejoin] final class ConnectJson[T <: AnyRef](compile: ConnectType => T) {
  private val heads = new Array[Array[Byte]](ConnectJson.MostSchemas)
  private val compiled = new Array[AnyRef](ConnectJson.MostSchemas)
  private var next = 0

  /** Runs `read` with the parser at the payload's opening brace; false if the payload is null. */
  def read(bytes: Array[Byte])(read: (T, JsonParser) => Unit): Boolean = {
    val place = placeOf(bytes)
    if (place >= 0 && readKnown(bytes, place, read)) true
    else {
      var hasPayload = false
      Json.readObject(bytes)(parser => hasPayload = readAnew(bytes, parser, read))
      hasPayload
    }
  }

  private def placeOf(bytes: Array[Byte]): Int = {
    var i = 0
    while (i < heads.length && !startsWith(bytes, heads(i))) i += 1
    if (i < heads.length) i else -1
  }

  private def startsWith(bytes: Array[Byte], head: Array[Byte]): Boolean =
    head != null && bytes.length > head.length &&
      util.Arrays.equals(bytes, 0, head.length, head, 0, head.length)

  /** Reads a record that begins with a known schema; false unless its payload is exactly one object. */
  private def readKnown(bytes: Array[Byte], place: Int, read: (T, JsonParser) => Unit): Boolean = {
    val from = heads(place).length
    var end = bytes.length - 1
    while (end > from && bytes(end) <= ' ') end -= 1
    bytes(from) == '{' && bytes(end) == '}' && {
      var isAlone = false
      Json.readObject(bytes, from, end) { parser =>
        read(compiled(place).asInstanceOf[T], parser)
        isAlone = atEnd(parser)
      }
      isAlone
    }
  }

  private def atEnd(parser: JsonParser): Boolean =
    try parser.nextToken() == null
    catch { case _: StreamReadException => false }

  private def readAnew(bytes: Array[Byte], parser: JsonParser, read: (T, JsonParser) => Unit): Boolean = {
    var reader = null.asInstanceOf[T]
    var payload: JsonNode = null
    var hasPayload, isRead, isNull = false
    var position = 0
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      if (name == "schema" && value == START_OBJECT)
        reader = compile(ConnectType.parse(Json.mapper.readTree[JsonNode](parser)))
      else if (name == "payload" && value == START_OBJECT) {
        hasPayload = true
        if (reader == null) payload = Json.mapper.readTree[JsonNode](parser)
        else {
          if (position == 1) remember(bytes, parser, reader)
          read(reader, parser)
          isRead = true
        }
      } else {
        if (name == "payload") isNull = value == VALUE_NULL
        parser.skipChildren()
      }
      position += 1
      token = parser.nextToken()
    }
    if (token != END_OBJECT) throw new BadRecord(Reason.JsonMalformed, "the object does not end")
    if (hasPayload && reader == null)
      throw new BadRecord(Reason.ConnectSchema, "no 'schema' beside the payload, as 'schema-include' asks for")
    if (hasPayload && !isRead) Json.readObject(Json.mapper.writeValueAsBytes(payload))(read(reader, _))
    if (!hasPayload && !isNull) throw new BadRecord(Reason.Envelope, "no object 'payload' beside the schema")
    hasPayload
  }

  /** Keeps the bytes before the payload, at which the parser is; they hold nothing but the schema. */
  private def remember(bytes: Array[Byte], parser: JsonParser, reader: T): Unit = {
    val from = parser.currentTokenLocation().getByteOffset.toInt
    if (from > 0 && from < bytes.length && bytes(from) == '{') {
      heads(next) = util.Arrays.copyOf(bytes, from)
      compiled(next) = reader
      next = (next + 1) % heads.length
    }
  }
}

private[rejoin] object ConnectJson {
  private final val MostSchemas = 8
  private val Opening = "\"schema\"".getBytes(java.nio.charset.StandardCharsets.US_ASCII)

  /** Whether the text begins with a schema, as Connect's JsonConverter writes it. */
  def isWrapped(bytes: Array[Byte]): Boolean = {
    val brace = afterBlanks(bytes, 0)
    val name = afterBlanks(bytes, brace + 1)
    brace < bytes.length && bytes(brace) == '{' && name + Opening.length <= bytes.length &&
    util.Arrays.equals(bytes, name, name + Opening.length, Opening, 0, Opening.length)
  }

  private def afterBlanks(bytes: Array[Byte], from: Int): Int = {
    var i = from
    while (i < bytes.length && bytes(i) <= ' ' && bytes(i) >= 0) i += 1
    i
  }
}

/** Decodes JSON rows, each with or without Kafka Connect's schema around it. */
final class ConnectRowDecoder(options: JsonOptions, targets: Seq[FieldTarget]) extends RowDecoder {
  private val bare = new JsonFields(options, targets)
  private val wrapped = new ConnectJson(schema => ConnectConverters.fields(schema, options, targets))

  /** Collects the columns whose value the event leaves out; where null, such a record is rejected. */
  var missing: util.BitSet = _

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit =
    if (!ConnectJson.isWrapped(bytes)) Json.readObject(bytes)(read(bare, _, row))
    else if (!wrapped.read(bytes)((fields, parser) => read(fields, parser, row))) bare.clear(row)

  private def read(fields: JsonFields, parser: JsonParser, row: InternalRow): Unit = {
    fields.missing = missing
    fields.read(parser, row)
  }
}
