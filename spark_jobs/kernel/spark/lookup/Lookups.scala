package org.apache.spark.sql.rejoin.lookup

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{Expression, Generator, UnsafeProjection}
import org.apache.spark.sql.classic.{DataFrame, ExpressionUtils}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

import org.apache.spark.sql.rejoin.ingest.EnvelopeRow
import org.apache.spark.sql.rejoin.run.Counters

/** Adds the answers of a database to the envelopes of left rows, in front of the exchange by key.
  *
  * So all lookups of an epoch are done before its last stage begins, in which the sink opens its transactions.
  */
object Lookups {

  /** `folder` is the checkpoint that keeps what was looked up; none where a repeated epoch may meet other rows. */
  def apply(
      envelopes: DataFrame,
      spec: LookupSpec,
      counters: Counters,
      query: String,
      folder: Option[String]): DataFrame = {
    val inputs = EnvelopeRow.schema.fieldNames.toSeq.map(name => ExpressionUtils.expression(col(name)))
    val place = folder.map { checkpoint =>
      val hadoop = new SerializableConfiguration(envelopes.sparkSession.sessionState.newHadoopConf())
      LookupPlace(s"$checkpoint/lookups/${spec.operator}", hadoop)
    }
    envelopes.select(ExpressionUtils.column(LookupGenerator(inputs, spec, counters, query, place)))
  }
}

/** Where logs of lookups are. */
final case class LookupPlace(folder: String, hadoop: SerializableConfiguration) {
  override def toString: String = folder
}

/** [[LookupTask]] as the only column of a select; children are the columns of an envelope. */
final case class LookupGenerator(
    children: Seq[Expression],
    spec: LookupSpec,
    counters: Counters,
    query: String,
    place: Option[LookupPlace])
    extends Generator
    with CodegenFallback {
  @transient private lazy val read = UnsafeProjection.create(children)
  @transient private lazy val task = {
    val context = TaskContext.get()
    val epoch = context.getLocalProperty(LookupGenerator.Epoch).toLong
    val log = place.map(p => new LookupLog(p.folder, p.hadoop.value, context.partitionId(), epoch))
    val made = new LookupTask(spec, LookupTable.of(spec), log, counters.lookups(query, spec.operator))
    context.addTaskCompletionListener[Unit](_ => made.close())
    made
  }

  override def elementSchema: StructType = EnvelopeRow.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val envelope = EnvelopeRow.read(read(input))
    task.add(envelope)
    Iterator.single(EnvelopeRow(envelope))
  }

  override def terminate(): IterableOnce[InternalRow] = task.finish().map(EnvelopeRow(_))

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): LookupGenerator =
    copy(children = newChildren)
}

object LookupGenerator {

  /** Spark's name of the property in which a task finds the number of its epoch. */
  private val Epoch = "streaming.sql.batchId"
}
