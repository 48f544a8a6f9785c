package org.apache.spark.sql.rejoin.ingest

import java.util

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.columns.{Expressions, Packed}
import org.apache.spark.sql.rejoin.format.{Decoded, SourceRecord}
import rejoin.core.row.{Envelope, KeyGroup, PartialRow, RowKind, SourcePosition, Unhealed}

/** Makes envelopes of decoded rows: filter, event time, key and key group, and the columns that are kept.
  *
  * The rows that hold a record's envelopes are reused for each record.
  */
private[rejoin] final class EnvelopeRows(plan: IngestPlan) {
  private val spec = plan.spec
  private val facts = Expressions.compiledProjection(plan.facts, spec.timeZone)
  private val hasFacts = spec.filter.isDefined || spec.rowtime.isDefined || spec.watermark.isDefined
  private val projectKey = Expressions.compiledProjection(plan.key, spec.timeZone)
  private val projectRow = Expressions.compiledProjection(plan.row, spec.timeZone)
  private val dropNullKeys = spec.dropNullKeys.toArray
  private var out = Array.fill(2)(EnvelopeRow.mutable())
  private val isUpsert = spec.isUpsert
  private val carriesPosition = spec.debezium.positions
  private lazy val missingValues = new MissingValues(plan)
  private var used = 0
  private val position = new SourcePosition

  def start(): Unit = used = 0

  /** Sets the source position of the record whose rows are added next. */
  def at(decoded: Decoded): Unit =
    if (carriesPosition) position.set(decoded.position)

  def size: Int = used

  def first: InternalRow = out(0)

  def iterator(): Iterator[InternalRow] =
    if (used == 1) Iterator.single(first) else out.iterator.take(used)

  /** Adds the envelope of a row, unless the filter or a NULL in its key drops it. */
  def add(kind: Byte, row: InternalRow, record: SourceRecord, progress: PartitionProgress): Unit =
    if (hasFacts) addByFacts(kind, row, record, progress) else emit(kind, Envelope.NoTime, row, record, progress)

  private def addByFacts(kind: Byte, row: InternalRow, record: SourceRecord, progress: PartitionProgress): Unit = {
    val fact = evaluate(facts, row)
    if (!fact.isNullAt(2)) {
      val watermark = Math.floorDiv(fact.getLong(2), 1000L)
      if (watermark > progress.watermark) progress.watermark = watermark
    }
    val time = if (fact.isNullAt(1)) noTime(kind) else Math.floorDiv(fact.getLong(1), 1000L)
    val accepted = !fact.isNullAt(0) && fact.getBoolean(0)
    if (accepted || isUpsert)
      emit(if (accepted) kind else RowKind.Delete, time, row, record, progress)
  }

  /** Adds the row of an upsert that lacks the columns `missing`. */
  def addPartial(
      row: InternalRow,
      missing: util.BitSet,
      unhealed: BadRecord => Unhealed,
      record: SourceRecord,
      progress: PartitionProgress): Unit = {
    val places = missingValues.inRow(missing)
    val before = used
    val watermark = progress.watermark
    add(RowKind.UpdateAfter, row, record, progress)
    if (missingValues.hidesWatermark(missing)) progress.watermark = watermark
    val added = out(before)
    if (used > before && added.getByte(EnvelopeRow.Kind) == RowKind.UpdateAfter && !places.isEmpty) {
      val partial = new PartialRow(added.getBinary(EnvelopeRow.Row), places, unhealed(MissingValues.unavailable))
      added.setByte(EnvelopeRow.Kind, RowKind.Partial)
      added.update(EnvelopeRow.Row, PartialRow.pack(partial))
    }
  }

  /** Marks the record's row as moved to another primary key, if the record's headers say so. */
  def follow(headers: ArrayData): Unit =
    if (used == 1 && headers != null) {
      val (header, moved) = out(0).getByte(EnvelopeRow.Kind) match {
        case RowKind.Delete => (EnvelopeRows.NewKey, RowKind.MovedAway)
        case RowKind.Partial => (EnvelopeRows.OldKey, RowKind.MovedPartial)
        case _ => (EnvelopeRows.OldKey, RowKind.MovedHere)
      }
      if (EnvelopeRows.has(headers, header)) out(0).setByte(EnvelopeRow.Kind, moved)
    }

  private def noTime(kind: Byte): Long =
    if (spec.rowtime.isEmpty || !RowKind.isAdd(kind)) Envelope.NoTime
    else throw new BadRecord(Reason.NullRowtime, s"the event time (${spec.rowtime.get}) is NULL")

  private def emit(
      kind: Byte,
      time: Long,
      row: InternalRow,
      record: SourceRecord,
      progress: PartitionProgress): Unit = {
    val key = evaluate(projectKey, row)
    if (!hasDroppedNull(key)) {
      if (used == out.length) out ++= Array.fill(used)(EnvelopeRow.mutable())
      val packedKey = Packed(key)
      val next = out(used)
      next.setInt(EnvelopeRow.Group, KeyGroup.of(packedKey, spec.groups))
      next.setByte(EnvelopeRow.Side, spec.side)
      next.setByte(EnvelopeRow.Kind, kind)
      next.setLong(EnvelopeRow.Time, time)
      next.setInt(EnvelopeRow.Source, progress.source)
      next.setLong(EnvelopeRow.Seq, record.offset)
      next.update(EnvelopeRow.Key, packedKey)
      next.update(EnvelopeRow.Row, positioned(Packed(evaluate(projectRow, row))))
      next.setLong(EnvelopeRow.RecordMs, Ingest.recordMs(record))
      used += 1
      if (used > 2 && !RowKind.isAdd(kind)) cancel()
    }
  }

  /** Leaves the last row out, and the one of the same record that it takes back. Rows of one place in Kafka are
    * ordered by their kind alone: it would come before the other.
    */
  private def cancel(): Unit = {
    val last = out(used - 1)
    val added = (0 until used - 1).indexWhere(i => RowKind.isAdd(kindOf(out(i))) && EnvelopeRows.isSame(out(i), last))
    if (added >= 0) {
      val free = out(added)
      System.arraycopy(out, added + 1, out, added, used - 2 - added)
      out(used - 2) = free
      used -= 2
    }
  }

  private def kindOf(row: InternalRow): Byte = row.getByte(EnvelopeRow.Kind)

  private def positioned(row: Array[Byte]): Array[Byte] =
    if (carriesPosition) position.append(row) else row

  private def hasDroppedNull(key: UnsafeRow): Boolean = {
    var i = 0
    while (i < dropNullKeys.length && !key.isNullAt(dropNullKeys(i))) i += 1
    i < dropNullKeys.length
  }

  private def evaluate(projection: UnsafeProjection, row: InternalRow): UnsafeRow =
    try projection(row)
    catch {
      case e: RuntimeException => throw new BadRecord(Reason.Expression, s"an expression fails: $e")
    }

  /** One envelope for each key group, which says that the table was emptied. */
  def truncate(record: SourceRecord, progress: PartitionProgress): Iterator[InternalRow] = {
    val at = positioned(Array.emptyByteArray)
    Iterator.range(0, spec.groups).map { group =>
      EnvelopeRow(Envelope.truncate(group, spec.side, progress.source, record.offset, at))
    }
  }

  def reject(deadLetter: Array[Byte], offset: Long, source: Int): Iterator[InternalRow] = {
    val group = Math.floorMod(source, spec.groups) // one task writes a partition's dead letters, in order
    Iterator.single(EnvelopeRow(Envelope.reject(group, spec.side, source, offset, deadLetter)))
  }
}

private[rejoin] object EnvelopeRows {

  /** Headers of the two events that Debezium writes when a primary key changes. */
  private val NewKey = UTF8String.fromString("__debezium.newkey")
  private val OldKey = UTF8String.fromString("__debezium.oldkey")

  private def isSame(a: InternalRow, b: InternalRow): Boolean =
    a.getLong(EnvelopeRow.Time) == b.getLong(EnvelopeRow.Time) &&
      util.Arrays.equals(a.getBinary(EnvelopeRow.Key), b.getBinary(EnvelopeRow.Key)) &&
      util.Arrays.equals(a.getBinary(EnvelopeRow.Row), b.getBinary(EnvelopeRow.Row))

  private def has(headers: ArrayData, name: UTF8String): Boolean =
    (0 until headers.numElements()).exists(headers.getStruct(_, 2).getUTF8String(0) == name)
}
