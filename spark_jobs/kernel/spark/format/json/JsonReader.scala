package org.apache.spark.sql.rejoin.format.json

import java.util

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.exc.{InputCoercionException, StreamReadException}
import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonStreamContext, JsonToken}
import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.avro.AvroSchemaIds
import org.apache.spark.sql.rejoin.format.{FieldTarget, FormatSpec, RowDecoder, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, DebeziumSpec, Reason}

/** Options of Flink's JSON formats that matter when reading.
  *
  * @param refusePlaceholder
  *   whether Debezium's placeholder for an unknown value is an error
  * @param debezium
  *   set if Debezium wrote the values and no schema says what they mean
  */
final case class JsonOptions(
    failOnMissingField: Boolean,
    ignoreParseErrors: Boolean,
    timestampStandard: String,
    refusePlaceholder: Boolean,
    debezium: Option[DebeziumSpec] = None)

object JsonOptions {
  val Strict: JsonOptions =
    JsonOptions(failOnMissingField = false, ignoreParseErrors = false, "SQL", refusePlaceholder = false)

  def apply(format: FormatSpec): JsonOptions =
    JsonOptions(
      format.flag("fail-on-missing-field"),
      format.flag("ignore-parse-errors"),
      format.options.getOrElse("timestamp-format.standard", "SQL"),
      refusePlaceholder = false)
}

/** Opens JSON objects; broken ones become a [[BadRecord]]. */
object Json {
  private[rejoin] val mapper = new ObjectMapper
  private val factory: JsonFactory = mapper.getFactory

  /** Runs `read` with a parser at the opening brace of the text, which must be an object. */
  def readObject(bytes: Array[Byte])(read: JsonParser => Unit): Unit = readObject(bytes, 0, bytes.length)(read)

  /** The same for a text that is a part of `bytes`. */
  def readObject(bytes: Array[Byte], from: Int, until: Int)(read: JsonParser => Unit): Unit =
    try {
      val parser = factory.createParser(bytes, from, until - from)
      try {
        if (parser.nextToken() != START_OBJECT)
          throw new BadRecord(Reason.JsonMalformed, "not a JSON object")
        read(parser)
      } finally parser.close()
    } catch {
      case e: StreamReadException => throw malformed(e)
      case e: java.io.IOException => throw new BadRecord(Reason.JsonMalformed, e.getMessage)
    }

  def malformed(e: StreamReadException): BadRecord =
    new BadRecord(Reason.JsonMalformed, s"not JSON: ${e.getOriginalMessage}")
}

/** Decodes a JSON object as a row; for keys and plain values. */
final class JsonDecoder(options: JsonOptions, targets: Seq[FieldTarget]) extends RowDecoder {
  private val fields = new JsonFields(options, targets)

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit =
    Json.readObject(bytes)(fields.read(_, row))
}

/** The same behind the id of its schema, as Confluent's serializer of JSON Schema writes it; the schema itself says
  * nothing that the columns do not say.
  */
final class FramedJsonDecoder(format: FormatSpec, targets: Seq[FieldTarget], isKey: Boolean) extends RowDecoder {
  private val fields = new JsonFields(JsonOptions(format), targets)
  private val ids = AvroSchemaIds(format, isKey)

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit = {
    try ids.read(bytes, record)
    catch {
      case bad: BadRecord if bad.reason == Reason.AvroFraming =>
        throw new BadRecord(Reason.JsonFraming, bad.getMessage)
    }
    Json.readObject(bytes, ids.bodyAt, bytes.length)(fields.read(_, row))
  }
}

/** Reads the wanted fields of a JSON object straight from the parser into a row.
  *
  * Producers nearly always write their fields in the same order, and the parser returns the same String
  * object for the same name: comparing it with the name last seen at its position finds a field quickly.
  */
final class JsonFields(
    options: JsonOptions,
    targets: Seq[FieldTarget],
    converterOf: FieldTarget => JsonConverter) {
  def this(options: JsonOptions, targets: Seq[FieldTarget]) =
    this(options, targets, t => JsonConverter(t.dataType, t.isTime, options))

  private val ordinals = targets.map(_.ordinal).toArray
  private val names = targets.map(_.field).toArray
  private val types = targets.map(_.typeText).toArray
  private val converters = targets.map(converterOf).toArray
  private val places = new util.HashMap[String, Integer]
  names.indices.foreach(i => places.put(names(i), i))
  private var seenNames = new Array[String](32)
  private var seenPlaces = new Array[Int](32)
  private val found = new Array[Boolean](names.length)

  /** Collects the columns whose value is Debezium's placeholder; where null, the record is rejected. */
  var missing: util.BitSet = _

  def clear(row: InternalRow): Unit = {
    var i = 0
    while (i < ordinals.length) {
      row.setNullAt(ordinals(i))
      i += 1
    }
  }

  /** Sets for each target whether the last object had its field. */
  def copyFound(into: Array[Boolean]): Unit = System.arraycopy(found, 0, into, 0, found.length)

  /** Reads the object that the parser has just opened, up to its end. */
  def read(parser: JsonParser, row: InternalRow): Unit = {
    clear(row)
    util.Arrays.fill(found, false)
    val context = parser.getParsingContext
    var position = 0
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val place = placeOf(parser.currentName(), position)
      val value = parser.nextToken()
      if (place < 0) parser.skipChildren() else readField(parser, value, row, place, context)
      position += 1
      token = parser.nextToken()
    }
    if (token != END_OBJECT) throw new BadRecord(Reason.JsonMalformed, "the object does not end")
    if (options.failOnMissingField) requireAll()
  }

  private def readField(
      parser: JsonParser,
      token: JsonToken,
      row: InternalRow,
      place: Int,
      context: JsonStreamContext): Unit = {
    found(place) = true
    if (token == VALUE_NULL) row.setNullAt(ordinals(place))
    else
      try converters(place).read(parser, token, row, ordinals(place))
      catch {
        case e: Exception if JsonFields.isFieldProblem(e) =>
          if (options.ignoreParseErrors) row.setNullAt(ordinals(place))
          else throw JsonFields.fieldProblem(names(place), types(place), e)
        case bad: BadRecord if bad.reason == Reason.Unavailable && missing != null =>
          // the placeholder may be nested in the value: the whole column is missing
          while (parser.getParsingContext ne context) parser.nextToken()
          row.setNullAt(ordinals(place))
          missing.set(ordinals(place))
        case bad: BadRecord if JsonFields.ColumnProblems(bad.reason) => throw JsonFields.named(names(place), bad)
      }
  }

  private def placeOf(name: String, position: Int): Int =
    if (position < seenNames.length && (seenNames(position) eq name)) seenPlaces(position)
    else {
      val place: Integer = places.get(name)
      remember(name, position, if (place == null) -1 else place.intValue)
    }

  private def remember(name: String, position: Int, place: Int): Int = {
    if (position >= seenNames.length && position < JsonFields.MostSeen) {
      seenNames = util.Arrays.copyOf(seenNames, position * 2)
      seenPlaces = util.Arrays.copyOf(seenPlaces, position * 2)
    }
    if (position < seenNames.length) {
      seenNames(position) = name
      seenPlaces(position) = place
    }
    place
  }

  private def requireAll(): Unit = {
    val missing = found.indexOf(false)
    if (missing >= 0) throw new BadRecord(Reason.JsonMissingField, s"no field '${names(missing)}'")
  }
}

object JsonFields {
  private final val MostSeen = 1024

  private val ColumnProblems = Set(Reason.ConnectMismatch, Reason.Unavailable)

  /** Whether only this value is wrong, rather than the whole text. */
  def isFieldProblem(e: Exception): Boolean = e match {
    case _: InputCoercionException | _: ArithmeticException | _: IllegalArgumentException => true
    case _: java.time.DateTimeException => true
    case bad: BadRecord => ValueProblems(bad.reason)
    case _ => false
  }

  private val ValueProblems = Set(Reason.JsonField, Reason.OutOfRange, Reason.Infinity)

  def fieldProblem(name: String, sqlType: String, e: Exception): BadRecord = e match {
    case bad: BadRecord if bad.reason != Reason.JsonField => named(name, bad)
    case stream: InputCoercionException => noValue(name, sqlType, stream.getOriginalMessage)
    case other => noValue(name, sqlType, other.getMessage)
  }

  private def noValue(name: String, sqlType: String, detail: String): BadRecord =
    new BadRecord(Reason.JsonField, s"'$name' is no $sqlType: $detail")

  private def named(name: String, bad: BadRecord): BadRecord =
    new BadRecord(bad.reason, s"'$name': ${bad.getMessage}")
}
