package rejoin.core.machine

import scala.collection.mutable.ArrayBuffer

import rejoin.core.state.{ArrivedValues, OneValue, ValueCounts, ValueList}

/** A column as calls read it.
  *
  * @param filter
  *   a BOOLEAN column that must be true
  * @param takesNulls
  *   whether NULL is a value like others
  */
private final case class ReadColumn(argument: Int, filter: Option[Int], takesNulls: Boolean) {

  /** The value of the last row as bytes; null where it does not count. */
  def value(values: AggregateColumns): Array[Byte] =
    if (!filter.forall(values.isTrue)) null
    else if (values.isNull(argument)) (if (takesNulls) ReadColumn.Null else null)
    else if (takesNulls) ReadColumn.Value +: values.sortable(argument)
    else values.sortable(argument)

  /** The sortable bytes of such a value; null for NULL. */
  def sortable(value: Array[Byte]): Array[Byte] =
    if (!takesNulls || value == null) value else if (value(0) == ReadColumn.Value) value.drop(1) else null
}

private object ReadColumn {
  private val Null = Array[Byte](0)
  private val Value: Byte = 1

  def apply(call: AggregateCallSpec): ReadColumn = ReadColumn(call.argument.get, call.filter, call.takesNulls)
}

/** A counted column and what the last row did to it. */
private final class ColumnCounts(val column: ReadColumn, tag: Char, values: AggregateColumns) {
  val counts = new ValueCounts(tag)

  /** +1 where the last row's value is there for the first time, -1 where it is gone, else 0. */
  var appeared = 0

  def change(sign: Int): Unit = {
    appeared = 0
    val value = column.value(values)
    if (value != null) {
      val count = counts.change(value, sign)
      if (sign > 0 && count == 1) appeared = 1 else if (sign < 0 && count == 0) appeared = -1
    }
  }
}

/** A column whose values are kept as they came.
  *
  * @param kept
  *   all of them, or the first or last alone
  */
private final case class ListedColumn(read: ReadColumn, distinct: Boolean, appendOnly: Boolean, kept: String)

private object ListedColumn {
  def apply(call: AggregateCallSpec): ListedColumn =
    ListedColumn(ReadColumn(call), call.distinct, call.appendOnly, call.kept)
}

/** The values of a column, which DISTINCT gives at their first and takes at their last row. */
private final class ColumnValues(
    val column: ListedColumn,
    tag: Char,
    values: AggregateColumns,
    counted: Array[ColumnCounts]) {
  val arrived: ArrivedValues =
    if (column.kept == AggregateCallSpec.All) new ValueList(tag, column.appendOnly)
    else new OneValue(keepsFirst = column.kept == AggregateCallSpec.First)
  private val counts: ColumnCounts = if (column.distinct) counted.find(_.column == column.read).get else null

  def change(sign: Int): Unit = {
    val value = column.read.value(values)
    val step = if (value == null) 0 else if (counts == null) sign else counts.appeared
    if (step > 0) arrived.add(value) else if (step < 0) arrived.remove(value)
  }

  def first: Array[Byte] = column.read.sortable(arrived.first)

  def last: Array[Byte] = column.read.sortable(arrived.last)

  def all: ArrayBuffer[Array[Byte]] = {
    val found = new ArrayBuffer[Array[Byte]]
    arrived.foreach(found += column.read.sortable(_))
    found
  }
}

/** One call of the SELECT list.
  *
  * @param accumulator
  *   stays empty where values are counted or kept
  */
private final class AggregateFunction(
    call: AggregateCallSpec,
    val accumulator: Accumulator,
    values: AggregateColumns,
    columns: Array[ColumnCounts],
    lists: Array[ColumnValues]) {
  private val argument = call.argument.getOrElse(-1)
  private val counted: ColumnCounts =
    if (call.countsValues) columns.find(_.column == ReadColumn(call)).get else null
  private val listed: ColumnValues =
    if (call.goesByArrival) lists.find(_.column == ListedColumn(call)).get else null

  def change(sign: Int): Unit =
    if (!call.isExtremum && listed == null) {
      if (counted == null) {
        if (call.filter.forall(values.isTrue)) {
          if (argument < 0) accumulator.change(null, sign)
          else if (!values.isNull(argument)) accumulator.change(values.number(argument), sign)
        }
      } else if (counted.appeared != 0) accumulator.change(values.number(argument), counted.appeared)
    }

  def result: Any = call.function match {
    case "MIN" => values.value(argument, counted.counts.min)
    case "MAX" => values.value(argument, counted.counts.max)
    case "FIRST_VALUE" => values.value(argument, listed.first)
    case "LAST_VALUE" => values.value(argument, listed.last)
    case "ARRAY_AGG" => unlessEmpty(values.array(argument, _))
    case "LISTAGG" => unlessEmpty(values.joined(_, call.separator))
    case _ => accumulator.result
  }

  private def unlessEmpty(made: Iterable[Array[Byte]] => Any): Any = {
    val all = listed.all
    if (all.isEmpty) null else made(all)
  }
}
