package org.apache.spark.sql.rejoin.sink

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.classic.{DataFrame, ExpressionUtils}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.columns.{Expressions, JoinedBytes, UnpackRow}
import org.apache.spark.sql.rejoin.format.RecordEncoder
import org.apache.spark.sql.rejoin.ingest.DeadLetter
import org.apache.spark.sql.rejoin.run.Counters
import rejoin.core.row.{Changelog, RowKind}

/** Turns changes into the records of a sink: the SELECT list in generated code, then the encoder. */
object Emit {

  /** Number of columns before those of the sink: kind, hash, dead letter, record timestamp. */
  private[rejoin] final val Leading = 4

  def apply(changes: DataFrame, spec: EmitSpec, counters: Counters, query: String): DataFrame = {
    val sink = spec.sink.getOrElse(throw new IllegalArgumentException("the query has no sink"))
    val passing = spec.where.fold(changes)(filtered(changes, _, spec))
    val inputs = new EmitInputs(passing, spec)
    val leading = Seq(inputs("kind"), inputs("hash"), inputs.deadLetter, inputs("recordMs"))
    val columns = leading ++ selectList(spec).map(inputs.over)
    val selected = passing.select(named(columns, "c"): _*)
    val encode = EmitGenerator(selected.queryExecution.analyzed.output, sink, counters, query)
    selected.select(ExpressionUtils.column(encode))
  }

  /** The SELECT list over the left and right columns side by side, with the types that the planner gave it. */
  private[rejoin] def selectList(spec: EmitSpec): Seq[Expression] =
    Expressions.bindAs(spec.select.map(_._2), spec.joined, spec.schema, spec.timeZone)

  /** The changes with more columns: whether a column of Python's is needed, and its arguments. */
  def arguments(changes: DataFrame, spec: EmitSpec, column: Int): DataFrame = {
    val inputs = new EmitInputs(changes, spec)
    val found = changes.columns.toSeq.map(name => changes.col(s"`$name`"))
    changes.select(found ++ named(inputs.isNeeded +: argumentsOf(spec, column).map(inputs.over), "argument"): _*)
  }

  /** The arguments of a column of Python's, over the columns before it. */
  private[rejoin] def argumentsOf(spec: EmitSpec, column: Int): Seq[Expression] = {
    val wanted = spec.computed(column)
    Expressions.bindAs(wanted.arguments, spec.before(column), wanted.argumentTypes, spec.timeZone)
  }

  private[rejoin] def condition(where: String, spec: EmitSpec): Expression =
    Coalesce(Seq(Expressions.bind(Seq(where), spec.joined, spec.timeZone).head, Literal(false)))

  /** The changes that pass. In an upsert sink a row that does not pass deletes its key, which one that did may have. */
  private def filtered(changes: DataFrame, where: String, spec: EmitSpec): DataFrame = {
    val inputs = new EmitInputs(changes, spec)
    val passes = Or(Not(inputs.isNeeded), inputs.over(condition(where, spec)))
    if (spec.writesTombstones) {
      val kind = ExpressionUtils.column(If(passes, inputs("kind"), Literal(RowKind.Delete)))
      changes.withColumn("kind", kind)
    } else changes.where(ExpressionUtils.column(passes))
  }

  private def named(expressions: Seq[Expression], prefix: String): Seq[Column] =
    expressions.zipWithIndex.map { case (expression, i) => ExpressionUtils.column(expression).as(s"$prefix$i") }
}

/** The columns of changes, and those of the rows that are packed in them. */
private final class EmitInputs(changes: DataFrame, spec: EmitSpec) {
  private val found = changes.queryExecution.analyzed.output
  private val isReject = EqualTo(this("kind"), Literal(RowKind.Reject))
  private val nothing = Literal(null, this("left").dataType)
  private val left = UnpackRow(If(isReject, nothing, this("left")), spec.left)
  private val right = UnpackRow(this("right"), spec.right)

  def apply(name: String): Expression = found.find(_.name == name).get

  def deadLetter: Expression = If(isReject, this("left"), nothing)

  /** Whether the values of a row are written. */
  def isNeeded: Expression =
    if (spec.writesTombstones) In(this("kind"), Seq(Literal(RowKind.Insert), Literal(RowKind.UpdateAfter)))
    else Not(isReject)

  /** An expression over the columns of both sides and those that Python has computed. */
  def over(bound: Expression): Expression = bound.transform {
    case BoundReference(i, _, _) if i < spec.left.size => GetStructField(left, i)
    case BoundReference(i, _, _) if i < spec.packed => GetStructField(right, i - spec.left.size)
    case BoundReference(i, _, _) => this(spec.computed(i - spec.packed).name)
  }
}

/** [[RecordRows]] as an expression over kind, hash, dead letter, record timestamp and the sink's columns.
  *
  * `terminate` counts how many changes of each kind the task has encoded.
  */
final case class EmitGenerator(children: Seq[Expression], sink: RecordSpec, counters: Counters, query: String)
    extends Generator
    with CodegenFallback {
  @transient private lazy val changes = new Array[Long](RowKind.Delete + 1)
  @transient private lazy val records = new RecordRows(sink, Emit.Leading)
  @transient private lazy val isInOrder = children.zipWithIndex.forall {
    case (BoundReference(ordinal, _, _), i) => ordinal == i
    case _ => false
  }
  @transient private lazy val inOrder = UnsafeProjection.create(children)

  override def elementSchema: StructType = SinkRecord.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val row = if (isInOrder) input else inOrder(input)
    val kind = row.getByte(0)
    if (RowKind.isChange(kind)) changes(kind) += 1
    Iterator.single(records(kind, row.getInt(1), row.getBinary(2), row.getLong(3), row))
  }

  override def terminate(): IterableOnce[InternalRow] = {
    for (kind <- changes.indices if changes(kind) > 0)
      counters.changes(query, kind.toByte, changes(kind))
    java.util.Arrays.fill(changes, 0L)
    Nil
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Expression =
    copy(children = newChildren)
}

/** Turns rows of a sink, and dead letters, into rows of [[SinkRecord]]; the result is reused. */
private[rejoin] final class RecordRows(sink: RecordSpec, offset: Int) {
  private val encoder = new RecordEncoder(sink, offset)
  private val metadata = new WrittenMetadata(sink, offset)
  private val topic = UTF8String.fromString(sink.topic)
  private val out = new SpecificInternalRow(SinkRecord.schema.map(_.dataType))

  def apply(kind: Byte, hash: Int, deadLetter: Array[Byte], recordMs: Long, row: InternalRow): InternalRow = {
    out.setInt(3, hash)
    out.setBoolean(6, kind == RowKind.Reject)
    out.setBoolean(7, RowKind.isChange(kind) && !RowKind.isAdd(kind))
    out.setLong(8, recordMs)
    if (kind == RowKind.Reject) reject(DeadLetter.unpack(deadLetter))
    else {
      out.update(0, topic)
      out.update(1, encoder.key(row))
      out.update(2, encoder.value(kind, row))
      metadata.write(row, out)
    }
    out
  }

  private def reject(record: UnsafeRow): Unit = {
    out.update(0, record.getUTF8String(0))
    out.update(1, record.getBinary(1))
    out.update(2, record.getBinary(2))
    if (record.isNullAt(3)) out.setNullAt(4) else out.setLong(4, record.getLong(3))
    out.update(5, record.getArray(4))
  }
}

/** The SELECT list and the encoder without Spark's engine, for [[LocalRun]]. */
final class Emitter(val spec: EmitSpec) {
  private val joined = new JoinedBytes(spec.left.size, spec.right.size)
  private val select = Expressions.compiledProjection(Emit.selectList(spec), spec.timeZone)
  private lazy val records = new RecordRows(spec.sink.get, 0)

  private val arguments =
    spec.computed.indices.map(i => Expressions.compiledProjection(Emit.argumentsOf(spec, i), spec.timeZone))
  private val passes = spec.where.map(text => Expressions.compiledPredicate(Emit.condition(text, spec), spec.timeZone))
  private val withComputed = new JoinedRow

  /** The result row of a change that is not a reject; it is reused. `computed` is what Python has computed for it. */
  def values(change: Changelog, computed: Seq[Any]): UnsafeRow = select(row(change, computed))

  /** The arguments of a column of Python's, where the columns before it are computed; reused. */
  def arguments(column: Int, change: Changelog, computed: Seq[Any]): UnsafeRow =
    arguments(column)(row(change, computed))

  /** Whether a change needs columns of Python's. */
  def isNeeded(change: Changelog): Boolean =
    RowKind.isChange(change.kind) && (RowKind.isAdd(change.kind) || !spec.writesTombstones)

  /** The change as it is written, if it is. */
  def passing(change: Changelog, computed: Seq[Any]): Option[Changelog] =
    if (!isNeeded(change) || passes.forall(_.eval(row(change, computed)))) Some(change)
    else Option.when(spec.writesTombstones)(change.copy(kind = RowKind.Delete))

  /** The record of a change, or the dead letter of a reject, as a row of [[SinkRecord]]; reused. */
  def record(change: Changelog, computed: Seq[Any]): InternalRow =
    if (change.kind == RowKind.Reject) records(change.kind, change.hash, change.left, change.recordMs, null)
    else records(change.kind, change.hash, null, change.recordMs, values(change, computed))

  private def row(change: Changelog, computed: Seq[Any]): InternalRow = {
    val packed = joined(change.left, change.right)
    if (computed.isEmpty) packed else withComputed(packed, new GenericInternalRow(computed.toArray))
  }
}
