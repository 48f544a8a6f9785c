package org.apache.spark.sql.rejoin

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.classic.{DataFrame, Dataset, ExpressionUtils, SparkSession}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.streaming.{DataStreamWriter, OutputMode, TimeMode}

/** The one object that Python calls. Nodes are the planner's JSON (spark_jobs/plan/physical.py). */
object Kernel {
  private implicit val formats: Formats = DefaultFormats

  /** Kafka records to envelopes: rows, rejects and marks of one table. */
  def ingest(records: DataFrame, scan: String): DataFrame = Ingest(records, IngestSpec.read(scan), counters(records))

  /** Envelopes through a stateful operator; the node's `name` is that of its counters. */
  def stateful(envelopes: DataFrame, node: String): DataFrame = {
    val name = (parse(node) \ "name").extract[String]
    val adapter = new StatefulAdapter(Operator.read(node), name, counters(envelopes))
    envelopes
      .as[Envelope](Encoders.product[Envelope])
      .groupBy(col("group"))
      .as[Int, Envelope](Encoders.scalaInt, Encoders.product[Envelope])
      .transformWithState(adapter, TimeMode.None(), OutputMode.Append())(Encoders.product[Changelog])
      .toDF()
  }

  /** A normaliser's changes to envelopes under another key. */
  def rekey(changes: DataFrame, node: String): DataFrame = {
    val inputs = Seq("kind", "hash", "left").map(name => ExpressionUtils.expression(col(name)))
    changes.select(ExpressionUtils.column(RekeyRows(inputs, RekeySpec.read(node))))
  }

  /** The clock's marks; options as [[Clock]] has them. */
  def clock(spark: SparkSession, options: String): DataFrame = {
    val named = parse(options).extract[Map[String, String]]
    spark.readStream.format(classOf[Clock].getName).options(named).load()
  }

  /** Changes to the records of a sink and its dead letters. */
  def emit(changes: DataFrame, sink: String): DataFrame = Emit(changes, EmitSpec.read(sink))

  /** Records to Kafka, with the delivery guarantee of the sink. */
  def foreachWriter(records: DataFrame, sink: String): DataStreamWriter[SinkRecord] =
    records
      .as[SinkRecord](Encoders.product[SinkRecord])
      .writeStream
      .foreach(new TransactionalWriter(SinkSpec.read(sink), counters(records)))

  /** What tasks have counted so far, as JSON. */
  def counters(spark: SparkSession): String = Counters.of(spark.sparkContext).value

  /** A plan in memory, without Spark's engine: for tests. */
  def local(plan: String): LocalRun = new LocalRun(plan)

  /** A state machine in memory: for tests. */
  def machine(node: String): MachineRun = new MachineRun(node)

  private def counters(frame: Dataset[_]): Counters = Counters.of(frame.sparkSession.sparkContext)
}
