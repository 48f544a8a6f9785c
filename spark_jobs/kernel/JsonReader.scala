package org.apache.spark.sql.rejoin

import java.util

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.core.exc.{InputCoercionException, StreamReadException}
import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

/** Options of Flink's JSON formats that matter when reading.
  *
  * @param refusePlaceholder
  *   Debezium's stand-in for a value that it does not know is an error
  */
final case class JsonOptions(
    failOnMissingField: Boolean,
    ignoreParseErrors: Boolean,
    timestampStandard: String,
    refusePlaceholder: Boolean)

object JsonOptions {
  def apply(format: FormatSpec): JsonOptions =
    JsonOptions(
      format.flag("fail-on-missing-field"),
      format.flag("ignore-parse-errors"),
      format.options.getOrElse("timestamp-format.standard", "SQL"),
      refusePlaceholder = false)
}

/** Opens JSON texts and says what is wrong with broken ones. */
object Json {
  private[rejoin] val mapper = new ObjectMapper
  private val factory: JsonFactory = mapper.getFactory

  /** Runs `read` on the text, its parser at the first token; the text must be an object. */
  def readObject(bytes: Array[Byte])(read: JsonParser => Unit): Unit =
    try {
      val parser = factory.createParser(bytes)
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

/** A JSON object is a row; used for keys and for plain values. */
final class JsonDecoder(options: JsonOptions, targets: Seq[FieldTarget]) extends RowDecoder {
  private val fields = new JsonFields(options, targets)

  override def decode(bytes: Array[Byte], record: SourceRecord, row: InternalRow): Unit =
    Json.readObject(bytes)(fields.read(_, row))
}

/** Reads the wanted fields of a JSON object straight from the parser into a row.
  *
  * Producers write their fields in one order nearly always, and the parser gives the same String
  * for the same name: a field is found by comparing references with the one last seen in its place.
  */
final class JsonFields(options: JsonOptions, targets: Seq[FieldTarget]) {
  private val ordinals = targets.map(_.ordinal).toArray
  private val names = targets.map(_.field).toArray
  private val converters = targets.map(t => JsonConverter(t.dataType, t.isTime, options)).toArray
  private val places = new util.HashMap[String, Integer]
  names.indices.foreach(i => places.put(names(i), i))
  private var seenNames = new Array[String](32)
  private var seenPlaces = new Array[Int](32)
  private val found = new Array[Boolean](names.length)

  def clear(row: InternalRow): Unit = {
    var i = 0
    while (i < ordinals.length) {
      row.setNullAt(ordinals(i))
      i += 1
    }
  }

  /** Reads the object that the parser has just opened, up to its end. */
  def read(parser: JsonParser, row: InternalRow): Unit = {
    clear(row)
    if (options.failOnMissingField) util.Arrays.fill(found, false)
    var position = 0
    var token = parser.nextToken()
    while (token == FIELD_NAME) {
      val place = placeOf(parser.currentName(), position)
      val value = parser.nextToken()
      if (place < 0) parser.skipChildren() else readField(parser, value, row, place)
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
      place: Int): Unit = {
    found(place) = true
    if (token == VALUE_NULL) row.setNullAt(ordinals(place))
    else
      try converters(place).read(parser, token, row, ordinals(place))
      catch {
        case e: Exception if JsonFields.isFieldProblem(e) =>
          if (options.ignoreParseErrors) row.setNullAt(ordinals(place))
          else throw JsonFields.fieldProblem(names(place), converters(place).dataType, e)
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

  /** Whether it is this value that is wrong, rather than the whole text. */
  def isFieldProblem(e: Exception): Boolean = e match {
    case _: InputCoercionException | _: ArithmeticException | _: IllegalArgumentException => true
    case _: java.time.DateTimeException => true
    case bad: BadRecord => bad.reason == Reason.JsonField
    case _ => false
  }

  def fieldProblem(name: String, dataType: DataType, e: Exception): BadRecord = {
    val detail = e match {
      case stream: InputCoercionException => stream.getOriginalMessage
      case other => other.getMessage
    }
    new BadRecord(Reason.JsonField, s"'$name' is no ${dataType.sql}: $detail")
  }
}
