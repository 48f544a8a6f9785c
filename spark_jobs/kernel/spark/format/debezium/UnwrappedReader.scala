package org.apache.spark.sql.rejoin.format.debezium

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{BooleanType, DataType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, RowDecoder, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, IngestSpec, Reason}
import rejoin.core.row.RowKind

/** Rows that Debezium's ExtractNewRecordState made of change events: upserts by the primary key.
  *
  * A tombstone deletes the row of its record key. A value whose `__deleted` is "true" or whose `__op` is
  * "d" deletes the row of its own key columns; its other columns are not read, since the database may
  * leave them empty. The other fields that begin with `__` hold what `source` holds in a whole event.
  *
  * @param rows
  *   reads all columns and the added fields
  * @param keyRows
  *   reads the primary key and the added fields only
  * @param noteMissing
  *   says where to collect the columns whose value the event leaves out
  * @param otherRecord
  *   the problem of a value that is not a row at all, or null
  */
final class UnwrappedDecoder(
    spec: IngestSpec,
    rows: RowDecoder,
    keyRows: RowDecoder,
    noteMissing: java.util.BitSet => Unit,
    otherRecord: Array[Byte] => BadRecord)
    extends ValueDecoder {
  private val added = new AddedFields(spec)
  private val source = new DebeziumSource(spec)
  private val keyOrdinals = spec.primaryKey.map(spec.ordinal).filter(i => i >= 0 && fromValue(i)).toArray
  private val others = spec.columns.indices.filter(i => fromValue(i) && !keyOrdinals.contains(i)).toArray
  private val status = spec.columns.indexWhere(c => c.field == "status" && c.dataType == StringType)
  private val types = spec.columns.map(_.dataType).toArray

  override def decode(record: SourceRecord, into: Decoded): Unit =
    if (record.value == null) deleteByKey(into)
    else {
      noteMissing(into.missing)
      if (isDeletion(record, into)) delete(into)
      else {
        into.afterKind = RowKind.UpdateAfter
        describe(into.after, into.after, into)
      }
    }

  private def deleteByKey(into: Decoded): Unit =
    if (keyOrdinals.isEmpty) into.beforeKind = RowKind.Delete
    else
      throw new BadRecord(
        Reason.NullPrimaryKey,
        "a tombstone has its key in the record key: declare 'key.format' and 'key.fields'")

  /** Reads the value. If it cannot be read as a whole, its key and added fields decide. */
  private def isDeletion(record: SourceRecord, into: Decoded): Boolean =
    try {
      rows.decode(record.value, record, into.after)
      val deleted = added.isDeleted(into.after)
      if (!deleted && mayBeOther(into.after)) refuseOther(record)
      deleted
    } catch {
      case bad: BadRecord =>
        if (bad.reason == Reason.JsonMalformed || bad.reason == Reason.AvroFraming) throw bad
        refuseOther(record)
        if (!isDeletedByKey(record, into)) throw bad
        true
    }

  private def isDeletedByKey(record: SourceRecord, into: Decoded): Boolean =
    try {
      into.missing.clear()
      keyRows.decode(record.value, record, into.after)
      added.isDeleted(into.after)
    } catch { case _: BadRecord => false }

  private def refuseOther(record: SourceRecord): Unit = {
    val problem = otherRecord(record.value)
    if (problem != null) throw problem
  }

  /** Whether a value may not be a row: it lacks a key, all other columns, or has a transaction's status. */
  private def mayBeOther(row: InternalRow): Boolean =
    keyOrdinals.exists(row.isNullAt) || others.forall(row.isNullAt) ||
      (status >= 0 && !row.isNullAt(status) && AddedFields.isTransactionStatus(row.getUTF8String(status)))

  private def delete(into: Decoded): Unit = {
    into.missing.clear()
    keyOrdinals.foreach(i => into.before.update(i, into.after.get(i, types(i))))
    into.beforeKind = RowKind.Delete
    describe(into.after, into.before, into)
  }

  private def describe(row: InternalRow, to: InternalRow, into: Decoded): Unit =
    if (source.isWanted) {
      source.clear()
      added.describe(row, source)
      source.write(to)
      source.writePosition(into)
    }

  private def fromValue(i: Int): Boolean = spec.columns(i).from == "value"
}

/** The fields that ExtractNewRecordState adds to a row, under the names of its default prefix. */
private[rejoin] final class AddedFields(spec: IngestSpec) {
  private val deleted = ordinal(AddedFields.Deleted)
  private val op = ordinal(AddedFields.Op)
  private val texts = AddedFields.Texts.map(t => ordinal(t._1)).toArray
  private val textNames = AddedFields.Texts.map(_._2).toArray
  private val numbers = AddedFields.Numbers.map(n => ordinal(n._1)).toArray
  private val numberNames = AddedFields.Numbers.map(_._2).toArray
  private val handled = ordinal(AddedFields.HandledMs)

  def isDeleted(row: InternalRow): Boolean = isTrue(row) ||
    (!row.isNullAt(op) && typeOf(op) == StringType && row.getUTF8String(op) == AddedFields.DeleteOp)

  private def isTrue(row: InternalRow): Boolean = !row.isNullAt(deleted) && (typeOf(deleted) match {
    case BooleanType => row.getBoolean(deleted)
    case StringType => row.getUTF8String(deleted) == AddedFields.True
    case _ => false
  })

  def describe(row: InternalRow, source: DebeziumSource): Unit = {
    var i = 0
    while (i < texts.length) {
      if (has(row, texts(i), StringType)) source.text(textNames(i), row.getUTF8String(texts(i)).toString)
      i += 1
    }
    i = 0
    while (i < numbers.length) {
      if (has(row, numbers(i), LongType)) source.number(numberNames(i), row.getLong(numbers(i)))
      i += 1
    }
    if (has(row, handled, LongType)) source.handledAt(row.getLong(handled))
  }

  private def has(row: InternalRow, i: Int, dataType: DataType): Boolean =
    typeOf(i) == dataType && !row.isNullAt(i)

  /** The ordinal of a field: of the column that declares it, else behind the table's columns. */
  private def ordinal(field: String): Int = {
    val declared = spec.columns.indexWhere(c => c.from == "value" && c.field == field)
    if (declared >= 0) declared
    else spec.columns.size + AddedFields.All.indexWhere(_._1 == field)
  }

  private def typeOf(i: Int): DataType =
    if (i < spec.columns.size) spec.columns(i).dataType else AddedFields.All(i - spec.columns.size)._2
}

private[rejoin] object AddedFields {
  private final val Deleted = "__deleted"
  private final val Op = "__op"
  private final val HandledMs = "__ts_ms"
  private val True = UTF8String.fromString("true")
  private val DeleteOp = UTF8String.fromString("d")
  private val Begin = UTF8String.fromString("BEGIN")
  private val End = UTF8String.fromString("END")

  private[rejoin] def isTransactionStatus(status: UTF8String): Boolean = status == Begin || status == End

  /** Fields and their names in `source`. */
  private val Texts = Seq("__db" -> "db", "__schema" -> "schema", "__table" -> "table", "__file" -> "file",
    "__commit_lsn" -> "commit_lsn", "__change_lsn" -> "change_lsn")
  private val Numbers = Seq("__lsn" -> "lsn", "__source_ts_ms" -> "ts_ms", "__pos" -> "pos", "__row" -> "row",
    "__event_serial_no" -> "event_serial_no")

  private val All: Seq[(String, DataType)] =
    (Seq(Deleted, Op) ++ Texts.map(_._1)).map(_ -> StringType) ++ (HandledMs +: Numbers.map(_._1)).map(_ -> LongType)

  /** Types of the columns behind the table's own in a decoded row. */
  val types: Seq[DataType] = All.map(_._2)

  def contains(field: String): Boolean = All.exists(_._1 == field)

  /** The fields that are read besides the table's columns. */
  def targets(spec: IngestSpec): Seq[FieldTarget] =
    All.zipWithIndex.collect {
      case ((field, dataType), i) if !spec.columns.exists(c => c.from == "value" && c.field == field) =>
        FieldTarget(field, dataType, spec.columns.size + i, sqlType = None)
    }
}
