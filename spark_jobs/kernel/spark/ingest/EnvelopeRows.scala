package org.apache.spark.sql.rejoin.ingest

import java.util

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.{Decoded, SourceRecord}
import org.apache.spark.sql.rejoin.run.{Expressions, Packed}
import rejoin.core.row.{Envelope, KeyGroup, PartialRow, RowKind, SourcePosition, Unhealed}

/** Decoded rows to envelopes: filter, event time, key and group, the columns that are kept.
  *
  * Two envelope rows are made once and filled again for each record.
  */
private[rejoin] final class EnvelopeRows(plan: IngestPlan) {
  private val spec = plan.spec
  private val facts = Expressions.compiledProjection(plan.facts, spec.timeZone)
  private val hasFacts = spec.filter.isDefined || spec.rowtime.isDefined || spec.watermark.isDefined
  private val projectKey = Expressions.compiledProjection(plan.key, spec.timeZone)
  private val projectRow = Expressions.compiledProjection(plan.row, spec.timeZone)
  private val dropNullKeys = spec.dropNullKeys.toArray
  private val out = Array.fill(2)(new SpecificInternalRow(EnvelopeRows.Types))
  private val isUpsert = spec.isUpsert
  private val carriesPosition = spec.debezium.positions
  private lazy val missingValues = new MissingValues(plan)
  private var used = 0
  private var position, positionMs = Envelope.NoTime

  def start(): Unit = used = 0

  /** Takes note of the source position of the record whose rows are added next. */
  def at(decoded: Decoded): Unit =
    if (carriesPosition) {
      position = decoded.position
      positionMs = decoded.positionMs
    }

  def size: Int = used

  def first: InternalRow = out(0)

  def iterator(): Iterator[InternalRow] =
    if (used == 1) Iterator.single(first) else out.iterator.take(used)

  /** Adds the envelope of a row, or none where the filter or a NULL key says so. */
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
    if (used > before && added.getByte(2) == RowKind.UpdateAfter && !places.isEmpty) {
      val partial = new PartialRow(added.getBinary(7), places, unhealed(MissingValues.unavailable))
      added.setByte(2, RowKind.Partial)
      added.update(7, PartialRow.pack(partial))
    }
  }

  /** Says of the record's row that its primary key has changed, where the record's headers do. */
  def follow(headers: ArrayData): Unit =
    if (used == 1 && headers != null) {
      val (header, moved) = out(0).getByte(2) match {
        case RowKind.Delete => (EnvelopeRows.NewKey, RowKind.MovedAway)
        case RowKind.Partial => (EnvelopeRows.OldKey, RowKind.MovedPartial)
        case _ => (EnvelopeRows.OldKey, RowKind.MovedHere)
      }
      if (EnvelopeRows.has(headers, header)) out(0).setByte(2, moved)
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
      val packedKey = Packed(key)
      val next = out(used)
      next.setInt(0, KeyGroup.of(packedKey, spec.groups))
      next.setByte(1, spec.side)
      next.setByte(2, kind)
      next.setLong(3, time)
      next.setInt(4, progress.source)
      next.setLong(5, record.offset)
      next.update(6, packedKey)
      val packedRow = Packed(evaluate(projectRow, row))
      next.update(7, if (carriesPosition) SourcePosition.append(packedRow, position, positionMs) else packedRow)
      used += 1
    }
  }

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

  def mark(group: Int, kind: Byte, time: Long, source: Int): InternalRow =
    special(group, kind, time, source, 0, EnvelopeRows.Nothing)

  /** For every group, that the table was emptied. */
  def truncate(record: SourceRecord, progress: PartitionProgress): Iterator[InternalRow] = {
    val at =
      if (carriesPosition) SourcePosition.append(EnvelopeRows.Nothing, position, positionMs) else EnvelopeRows.Nothing
    Iterator.range(0, spec.groups).map { group =>
      special(group, RowKind.Truncate, Envelope.NoTime, progress.source, record.offset, at)
    }
  }

  def reject(deadLetter: Array[Byte], offset: Long, source: Int): Iterator[InternalRow] = {
    val group = Math.floorMod(source, spec.groups) // one task writes a partition's dead letters, in order
    Iterator.single(special(group, RowKind.Reject, Envelope.NoTime, source, offset, deadLetter))
  }

  private def special(
      group: Int,
      kind: Byte,
      time: Long,
      source: Int,
      seq: Long,
      content: Array[Byte]): InternalRow = {
    val row = out(0)
    row.setInt(0, group)
    row.setByte(1, spec.side)
    row.setByte(2, kind)
    row.setLong(3, time)
    row.setInt(4, source)
    row.setLong(5, seq)
    row.update(6, EnvelopeRows.Nothing)
    row.update(7, content)
    row
  }
}

private[rejoin] object EnvelopeRows {
  val Types: Seq[DataType] =
    Seq(IntegerType, ByteType, ByteType, LongType, IntegerType, LongType, BinaryType, BinaryType)
  private val Nothing = new Array[Byte](0)

  /** Headers of the two events that Debezium makes of the change of a primary key. */
  private val NewKey = UTF8String.fromString("__debezium.newkey")
  private val OldKey = UTF8String.fromString("__debezium.oldkey")

  private def has(headers: ArrayData, name: UTF8String): Boolean =
    (0 until headers.numElements()).exists(headers.getStruct(_, 2).getUTF8String(0) == name)
}
