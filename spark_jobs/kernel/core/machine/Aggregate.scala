package rejoin.core.machine

import rejoin.core.row.{GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.{KeyedState, StateCell}
import rejoin.core.time.{GroupState, KeyTtl}

/** Retraction-aware GROUP BY; the join key of its input is what it groups by.
  *
  * {{{
  * cell 'A' + group      : version, TTL, rows, one accumulator per call, value counts, values in order of arrival
  * cells 128, 129, ...   : further pages of value counts, then of values
  * }}}
  * MIN, MAX and DISTINCT count the values of their column; LISTAGG and its like keep them as they came. Calls over
  * the same column and FILTER share them. Per group and batch only the net change leaves. docs/semantics.md,
  * "Aggregation".
  *
  * Where no row ever comes (`noInput`), key group 0 has the one row, and its cell says that it has been emitted.
  */
final class Aggregate(spec: AggregateSpec, values: AggregateColumns, outputs: OutputFunctions) extends Machine {
  import Aggregate._

  private val ttl = new KeyTtl(spec.timing.ttlMs.head)
  private val result = new KeyedResult(outputs)
  private val header = new StateCell(keyTag)
  private val columns = spec.calls.filter(_.countsValues).map(ReadColumn(_)).distinct
    .zipWithIndex.map { case (column, i) => new ColumnCounts(column, (128 + i).toChar, values) }.toArray
  private val lists = spec.calls.filter(_.goesByArrival).map(ListedColumn(_)).distinct
    .zipWithIndex.map { case (column, i) =>
      new ColumnValues(column, (128 + columns.length + i).toChar, values, columns)
    }.toArray
  private val calls = spec.calls.zipWithIndex.map { case (call, i) =>
    new AggregateFunction(call, values.accumulator(i), values, columns, lists)
  }.toArray
  private var rows = 0L

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    ttl.foreachDue(group, state)(expire(_, group, state))
    batch.foreachKey(visit(_, group, state, out))
  }

  override def begin(group: GroupState, state: KeyedState, out: Output): Unit =
    if (spec.noInput) {
      load(NoKey, state)
      if (!header.isStored) {
        result.emit(null, row(NoKey), repeats = false, GroupBatch.hash(NoKey), out)
        group.rows(0) += 1
        save(state)
      }
    }

  override def groupOf(key: Array[Byte], groups: Int): Int = if (spec.noInput) 0 else super.groupOf(key, groups)

  private def visit(changes: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    load(changes.key, state)
    val before = row(changes.key)
    val rowsBefore = rows
    var isTouched = false
    changes.foreach { row =>
      val sign = if (RowKind.isAdd(row.kind)) 1 else -1
      if (rows == 0 && sign < 0) group.unknownRetractions += 1
      else {
        change(row.row, sign)
        isTouched = true
      }
    }
    if (isTouched) {
      result.emit(before, row(changes.key), repeats = ttl.isOn, GroupBatch.hash(changes.key), out)
      group.rows(0) += rows.sign - rowsBefore.sign
      ttl.touch(changes.key, group)
      save(state)
    }
  }

  /** A group without rows starts anew, whatever stray retractions have left in it. */
  private def change(row: Array[Byte], sign: Int): Unit = {
    rows += sign
    if (rows == 0) forget()
    else {
      values.point(row)
      columns.foreach(_.change(sign))
      lists.foreach(_.change(sign))
      calls.foreach(_.change(sign))
    }
  }

  private def forget(): Unit = {
    rows = 0L
    calls.foreach(_.accumulator.reset())
    columns.foreach(_.counts.clear())
    lists.foreach(_.arrived.clear())
  }

  private def hasNoRow: Boolean = rows == 0 && !spec.noInput

  /** The group's result, or null where it has no rows. */
  private def row(key: Array[Byte]): Array[Byte] =
    if (hasNoRow) null else values.pack(key, calls.map(_.result))

  private def expire(key: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    load(key, state)
    if (header.isStored) {
      val isGone = ttl.hasExpired(group)
      if (isGone) {
        forget()
        group.rows(0) -= 1
      }
      if (isGone || ttl.visitAgain(key, group)) save(state)
    }
  }

  def keyTag: Char = 'A'

  /** The result as it stands, and of how many rows. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    val result = row(key)
    KeyContents(Option.when(result != null)(
      KeptRow(0, result, ttl.writtenMs, Seq("rows" -> rows) ++ ttl.facts)))
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    ttl.reset()
    rows = 0L
    columns.foreach(_.counts.reset(key, state))
    lists.foreach(_.arrived.reset(key, state))
    val in = header.open(key, state)
    if (in == null) calls.foreach(_.accumulator.reset())
    else {
      ttl.read(in)
      rows = in.varLong()
      calls.foreach(_.accumulator.read(in))
      columns.foreach(_.counts.read(in))
      lists.foreach(_.arrived.read(in))
    }
  }

  private def save(state: KeyedState): Unit = {
    val out = header.write()
    ttl.write(out)
    out.varLong(rows)
    calls.foreach(_.accumulator.write(out))
    columns.foreach(_.counts.write(out))
    lists.foreach(_.arrived.write(out))
    header.save(state, isEmpty = hasNoRow)
  }
}

private object Aggregate {

  /** The packed key of no columns. */
  private val NoKey = Array.emptyByteArray
}

/** The columns of an aggregate's input and result, whose types it does not know. One instance serves one task. */
trait AggregateColumns {

  /** The accumulator of a call, by the type of its argument; one that is never used for functions whose values are
    * kept elsewhere.
    */
  def accumulator(call: Int): Accumulator

  /** Chooses the packed input row that the following four read. */
  def point(row: Array[Byte]): Unit

  def isNull(column: Int): Boolean

  /** Whether a BOOLEAN column is TRUE. */
  def isTrue(column: Int): Boolean

  /** A value as accumulators take it; null for a type that only COUNT takes. */
  def number(column: Int): Number

  /** A value as [[ValueCounts]] takes it. */
  def sortable(column: Int): Array[Byte]

  /** The value whose [[sortable]] bytes these are; null for null. */
  def value(column: Int, sortable: Array[Byte]): Any

  /** The array of the values whose [[sortable]] bytes these are. */
  def array(column: Int, sortable: Iterable[Array[Byte]]): Any

  /** The texts whose [[sortable]] bytes these are as one. */
  def joined(sortable: Iterable[Array[Byte]], separator: String): Any

  /** The packed result row: the group's key, then what each call has for a result. */
  def pack(key: Array[Byte], results: Array[Any]): Array[Byte]
}
