package rejoin.core.machine.normalize

import scala.collection.mutable

import rejoin.core.machine.{Machine, NormalizeSpec, OutputFunctions}
import rejoin.core.row.{Bytes, Envelope, GroupBatch, KeyContents, KeyRows, Mark, Output, RowFunctions, RowKind,
  SourcePosition}
import rejoin.core.state.{Cell, KeyedState}
import rejoin.core.time.GroupState

/** Turns an upsert stream into a complete changelog: +I, -U/+U, -D with full rows.
  *
  * Flink's ChangelogNormalize (docs/semantics.md, "Normalisation"): unknown deletes are ignored,
  * identical rows swallowed unless there is a TTL. What a partial row lacks is taken from the row
  * before it. Rows that fail the WHERE clause stay, for the sake of partial rows to come. With source
  * positions, repeated changes are ignored. Of several changes of a key in one batch only the net one
  * leaves. Where [[KeyChanges]] follows, a row may also wait for values of its old key ([[LackingRow]]).
  */
final class Normalize(spec: NormalizeSpec, functions: RowFunctions, outputs: OutputFunctions) extends Machine {
  private val cell = new NormalizedCell(spec)
  private val row: NormalizedRow = {
    val complete = new CompleteRow(spec, cell, functions, outputs)
    if (spec.keyChanges) new LackingRow(complete, cell, functions) else complete
  }
  private var truncations: Truncations = _

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    cell.ttl.foreachDue(group, state)(key => if (row.expire(key, group, state, out)) group.rows(0) -= 1)
    truncations = if (batch.truncations.isEmpty) null else new Truncations(batch.truncations, spec.positions)
    batch.foreachKey(visit(_, group, state, out))
    if (truncations != null) truncateOthers(group, state, out)
    batch.marks.foreach { mark =>
      if (mark.group == 0 && mark.kind == RowKind.Watermark) Mark.emit(mark.kind, mark.source, mark.time, out)
    }
  }

  def keyTag: Char = NormalizedCell.Tag

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    cell.load(key, state)
    cell.look
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    row.open(rows.key, state)
    if (truncations == null) rows.foreach(row.apply(_, group))
    else {
      truncations.visited += Bytes(rows.key)
      (0 to truncations.size).foreach { phase =>
        if (phase > 0) row.truncate(truncations.position(phase - 1))
        rows.foreach(change => if (truncations.phaseOf(change) == phase) row.apply(change, group))
      }
    }
    row.close(group, state, out)
  }

  /** The rows that stay are those of the keys that no row of the batch has touched. */
  private def truncateOthers(group: GroupState, state: KeyedState, out: Output): Unit =
    state.names(NormalizedCell.Tag).map(Cell.keyOf).filterNot(key => truncations.visited(Bytes(key))).foreach { key =>
      row.open(key, state)
      (0 until truncations.size).foreach(number => row.truncate(truncations.position(number)))
      row.close(group, state, out)
    }
}

/** The truncations of one batch, by place in Kafka.
  *
  * A truncation follows the rows of its partition that stand before it, and all rows of the others: their order
  * in the database is not known.
  */
private final class Truncations(found: Iterable[Envelope], carryPosition: Boolean) {
  private val ordered = found.toVector.sortBy(t => (t.source, t.seq)).distinctBy(t => (t.source, t.seq))
  private val positions = ordered.map { truncation =>
    val position = new SourcePosition
    if (carryPosition) position.readTail(truncation.row)
    position
  }

  /** Keys to which the truncations have been applied. */
  val visited = mutable.HashSet.empty[Bytes]

  def size: Int = ordered.size
  def position(number: Int): SourcePosition = positions(number)

  /** After how many of the truncations the row is to be applied. */
  def phaseOf(row: Envelope): Int = ordered.lastIndexWhere(t => t.source == row.source && t.seq < row.seq) + 1
}
