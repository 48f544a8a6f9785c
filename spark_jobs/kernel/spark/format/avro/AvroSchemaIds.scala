package org.apache.spark.sql.rejoin.format.avro

import java.nio.ByteBuffer
import java.util
import java.util.UUID

import org.apache.avro.Schema

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.{FormatSpec, SourceRecord}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Reads the id of the writer schema from a record (`rejoin.schema-id`). One per task, for keys or values. */
private[rejoin] abstract class AvroSchemaIds {

  /** Where the Avro data begins. */
  var bodyAt = 0

  /** The id: a number in `low`, or 128 bits in both. Apicurio's headers have 1 in `high` for a `contentId`. */
  var high, low = 0L

  /** Reads the id of a key or value of `record`. */
  def read(bytes: Array[Byte], record: SourceRecord): Unit

  /** The schema with the id that was read last. */
  def schema(registry: Registry): Schema

  /** The same id as messages show it. */
  def text: String

  protected def refuse(message: String): Nothing = throw new BadRecord(Reason.AvroFraming, message)
}

private[rejoin] object AvroSchemaIds {
  final val Option = "rejoin.schema-id"

  def apply(format: FormatSpec, isKey: Boolean): AvroSchemaIds =
    format.options.getOrElse(Option, "prefix") match {
      case "prefix" => new PrefixedId
      case "apicurio-8-byte" => new EightByteId
      case "apicurio-headers" => new ApicurioHeaders(isKey)
      case "confluent-headers" => new ConfluentHeaders(isKey)
      case other => throw new IllegalArgumentException(s"unknown '$Option': '$other'")
    }

  /** The value of the last header of the name, or null. */
  def header(record: SourceRecord, name: UTF8String): Array[Byte] = {
    var found: Array[Byte] = null
    if (record.headers != null) {
      var i = 0
      while (i < record.headers.numElements()) {
        val header: InternalRow = record.headers.getStruct(i, 2)
        if (header.getUTF8String(0) == name) found = header.getBinary(1)
        i += 1
      }
    }
    found
  }
}

/** Confluent's form: a zero byte and the id in four bytes before the data. */
private[rejoin] class PrefixedId extends AvroSchemaIds {
  bodyAt = 5

  override def read(bytes: Array[Byte], record: SourceRecord): Unit = {
    if (bytes.length < 5) refuse(s"${bytes.length} bytes cannot hold a schema id")
    bytes(0) match {
      case 0 => ()
      case 3 => refuse("starts with byte 3, AWS Glue's framing, which is not supported")
      case other => refuse(s"starts with byte $other, not with 0 and a schema id")
    }
    low = ((bytes(1) & 0xff) << 24 | (bytes(2) & 0xff) << 16 | (bytes(3) & 0xff) << 8 | (bytes(4) & 0xff)).toLong
    if (low < 0) refuse(s"schema id $low is no registry's")
    if (low == 0)
      refuse(
        "schema id 0: likely Apicurio's own 8-byte id; set 'rejoin.schema-id' = 'apicurio-8-byte', or let the " +
          "producer use its Default4ByteIdHandler")
  }

  override def schema(registry: Registry): Schema = registry.byId(low)

  override def text: String = low.toString
}

/** Apicurio's own form: a zero byte and the global id in eight bytes before the data. */
private[rejoin] final class EightByteId extends AvroSchemaIds {
  bodyAt = 9

  override def read(bytes: Array[Byte], record: SourceRecord): Unit = {
    if (bytes.length < 9) refuse(s"${bytes.length} bytes cannot hold a schema id of 8 bytes")
    if (bytes(0) != 0) refuse(s"starts with byte ${bytes(0)}, not with 0 and a schema id")
    low = ByteBuffer.wrap(bytes, 1, 8).getLong
    if (low >> 32 != 0) refuse(s"schema id $low: likely Confluent's 4-byte id; set 'rejoin.schema-id' = 'prefix'")
  }

  override def schema(registry: Registry): Schema = registry.byApicurioId("globalIds", low)

  override def text: String = s"$low (globalId)"
}

/** Apicurio's ids in headers, `globalId` before `contentId`; key and value are Avro data only. */
private[rejoin] final class ApicurioHeaders(isKey: Boolean) extends AvroSchemaIds {
  private val part = if (isKey) "key" else "value"
  private val globalId = UTF8String.fromString(s"apicurio.$part.globalId")
  private val contentId = UTF8String.fromString(s"apicurio.$part.contentId")

  override def read(bytes: Array[Byte], record: SourceRecord): Unit = {
    val global = AvroSchemaIds.header(record, globalId)
    val found = if (global != null) global else AvroSchemaIds.header(record, contentId)
    if (found == null) refuse(s"neither header $globalId nor $contentId")
    if (found.length != 8) refuse(s"a schema id of ${found.length} bytes in the header")
    high = if (global != null) 0 else 1
    low = ByteBuffer.wrap(found).getLong
  }

  override def schema(registry: Registry): Schema = registry.byApicurioId(kind + "s", low)

  override def text: String = s"$low ($kind)"

  private def kind: String = if (high == 0) "globalId" else "contentId"
}

/** Confluent's ids in headers: byte 1 and a GUID, or byte 0 and a number. A record without the header has
  * its id before the data; Confluent's own reader accepts both.
  */
private[rejoin] final class ConfluentHeaders(isKey: Boolean) extends PrefixedId {
  private val name = UTF8String.fromString(if (isKey) "__key_schema_id" else "__value_schema_id")
  private var isGuid = false

  override def read(bytes: Array[Byte], record: SourceRecord): Unit = {
    val found = AvroSchemaIds.header(record, name)
    isGuid = found != null && found.length == 17 && found(0) == 1
    high = 0
    if (isGuid) {
      val guid = ByteBuffer.wrap(found, 1, 16)
      high = guid.getLong
      low = guid.getLong
    } else super.read(if (found == null) bytes else numbered(found), record)
    bodyAt = if (found == null) 5 else 0
  }

  private def numbered(found: Array[Byte]): Array[Byte] =
    if (found.length == 5) found else refuse(s"header $name holds no schema id")

  override def schema(registry: Registry): Schema =
    if (isGuid) registry.byGuid(text) else super.schema(registry)

  override def text: String = if (isGuid) new UUID(high, low).toString else super.text
}

/** The readers of a task, one for each writer schema, compiled when its first record comes.
  *
  * @param compile
  *   makes a reader from a schema and the text of its id
  */
private[rejoin] final class ReadersBySchemaId[R >: Null](
    format: FormatSpec,
    isKey: Boolean,
    compile: (Schema, String) => R) {
  private val registry = Registry.of(format.options)
  private val ids = AvroSchemaIds(format, isKey)
  private val known = new util.HashMap[UUID, R]
  private var lastHigh, lastLow = 0L
  private var last: R = _

  def bodyAt: Int = ids.bodyAt

  def idText: String = ids.text

  /** The reader for a record; [[bodyAt]] then says where its data begins. */
  def of(bytes: Array[Byte], record: SourceRecord): R = {
    ids.read(bytes, record)
    if (last == null || ids.low != lastLow || ids.high != lastHigh) {
      last = find()
      lastLow = ids.low
      lastHigh = ids.high
    }
    last
  }

  private def find(): R = {
    val id = new UUID(ids.high, ids.low)
    val found = known.get(id)
    if (found != null) found
    else {
      val compiled = compile(ids.schema(registry), ids.text)
      known.put(id, compiled)
      compiled
    }
  }
}
