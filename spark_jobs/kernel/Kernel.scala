package org.apache.spark.sql.rejoin

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Extraction, Formats}

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.classic.{DataFrame, Dataset, ExpressionUtils, SparkSession}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, TimeMode}

import org.apache.spark.sql.rejoin.checkpoint.{CheckpointCopy, CheckpointFiles, HadoopSettings}
import org.apache.spark.sql.rejoin.format.avro.{AvroFit, RegistryWaits}
import org.apache.spark.sql.rejoin.ingest.{ChangelogRow, EnvelopeRow, Gate, Ingest, IngestSpec, SourceGuard}
import org.apache.spark.sql.rejoin.lookup.{LookupSpec, LookupTable, Lookups}
import org.apache.spark.sql.rejoin.run.{BrokerClock, Clock, Counters, GroupKey, JvmCounts, Lifeline, LocalRun, Operator,
  RekeyRows, RekeySpec, StatePlaces, StateReader, StatefulAdapter, StoredOperator}
import org.apache.spark.sql.rejoin.sink.{Emit, EmitSpec, SinkProducers, SinkSpec, Takeover}
import rejoin.core.row.Envelope

/** The one object that Python calls, by spark_jobs/kernel/calls.py, function for function. Nodes are the planner's
  * JSON (spark_jobs/plan/nodes/physical.py).
  */
object Kernel {
  private implicit val formats: Formats = DefaultFormats

  /** Kafka records to envelopes: rows, rejects and marks of one table, as [[IngestSpec]] says. */
  def ingest(
      records: DataFrame,
      scan: String,
      query: String,
      chunked: Boolean,
      realTime: Boolean,
      steps: Boolean): DataFrame =
    Ingest(records, IngestSpec.read(scan, chunked, realTime, steps), counters(records), query)

  /** Envelopes through a stateful operator of a query; the others as [[StatefulAdapter]] and [[GroupKey]] have them.
    *
    * The output mode says append in either mode of Spark's: it is part of a checkpoint, which both continue.
    */
  def stateful(
      envelopes: DataFrame,
      node: String,
      query: String,
      passesLoaded: Boolean,
      realTime: Boolean,
      steps: Boolean,
      movesOn: Boolean,
      groups: Int,
      hearsEnd: Boolean,
      evenGroups: Boolean): DataFrame = {
    val operator = Operator.read(node)
    val key = GroupKey(evenGroups)
    val adapter = new StatefulAdapter(
      operator,
      query,
      operator.node.id,
      passesLoaded,
      realTime,
      steps,
      movesOn,
      groups,
      hearsEnd,
      key,
      counters(envelopes))
    envelopes
      .as[Envelope](EnvelopeRow.encoder)
      .groupBy(key.column("group"))
      .as[Int, Envelope](Encoders.scalaInt, EnvelopeRow.encoder)
      .transformWithState(adapter, TimeMode.None(), OutputMode.Append())(ChangelogRow.encoder)
      .toDF()
  }

  /** Envelopes of left rows with the answers to their lookups: what [[stateful]] takes of a node `lookup-join`.
    *
    * `folder` is the query's checkpoint; null where what was looked up is not kept.
    */
  def lookup(envelopes: DataFrame, node: String, query: String, folder: String): DataFrame =
    Lookups(envelopes, LookupSpec.read(node), counters(envelopes), query, Option(folder))

  /** Connects to the database of a node `lookup-join`; throws what is wrong with it or with the table there, else
    * gives what it says of the table: JSON of [[org.apache.spark.sql.rejoin.lookup.LookupFacts]].
    */
  def checkLookup(node: String): String =
    compact(render(Extraction.decompose(LookupTable.check(LookupSpec.read(node)))))

  /** An operator's changes to envelopes under another key. */
  def rekey(changes: DataFrame, node: String, steps: Boolean): DataFrame = {
    val inputs = ChangelogRow.encoder.schema.fieldNames.toSeq.map(name => ExpressionUtils.expression(col(name)))
    changes.select(ExpressionUtils.column(RekeyRows(inputs, RekeySpec.read(node), steps)))
  }

  /** The clock's marks; options as [[Clock]] has them. */
  def clock(spark: SparkSession, options: String): DataFrame = {
    val named = parse(options).extract[Map[String, String]]
    spark.readStream.format(classOf[Clock].getName).options(named).load()
  }

  /** Changes of one of the sink's inputs to its records and dead letters. */
  def emit(changes: DataFrame, sink: String, input: Int): DataFrame =
    Emit(changes, EmitSpec.read(sink, input), counters(changes), (parse(sink) \ "name").extract[String])

  /** Changes of one of the sink's inputs with the arguments of a column that Python computes. */
  def arguments(changes: DataFrame, sink: String, input: Int, column: Int): DataFrame =
    Emit.arguments(changes, EmitSpec.read(sink, input), column)

  /** Makes the ledgers of a sink's writers this driver's; gives how many of them needed the operator's answer.
    *
    * @param since
    *   the epoch after the last one that had anything to write
    * @param known
    *   how many writers are known to have had a ledger
    * @param written
    *   the operator's answer, `yes` or `no`, to whether a repeated epoch is in Kafka already; null for none
    */
  def takeOver(
      sink: String,
      writers: Int,
      epoch: Long,
      since: Long,
      repeated: Boolean,
      known: Long,
      written: String): Int = {
    val spec = SinkSpec.read(sink)
    val word = Option(written).map(_ == "yes")
    val by = Takeover(spec.checkpoint, spec.generation, epoch, since, repeated, known, word, spec.dense, spec.folder)
    SinkProducers.ofThisJvm.takeOver(spec, writers, by)
  }

  /** What a query does: JSON `{runsRecords, progress}`; `runsRecords` says whether an epoch with records runs, and
    * `progress`, Spark's newest report of an epoch, is left out if its timestamp is `known`.
    */
  def observed(query: StreamingQuery, known: String): String = {
    val status = query.status
    val runsRecords = query.isActive && status.isTriggerActive && status.isDataAvailable
    val progress = Option(query.lastProgress).filter(_.timestamp != known)
    s"""{"runsRecords":$runsRecords${progress.fold("")(p => s""","progress":${p.json}""")}}"""
  }

  /** The ids of topics: JSON `{topic: id}`; `client` are Kafka's properties as JSON. */
  def topicIds(client: String, topics: String): String =
    compact(render(Extraction.decompose(
      SourceGuard.topicIds(parse(client).extract[Map[String, String]], parse(topics).extract[Seq[String]]))))

  /** What tasks and this JVM have counted so far: `queries` as [[Counters.value]] has them, `jvm` as [[JvmCounts]]. */
  def counters(spark: SparkSession): String =
    s"""{"queries":${Counters.of(spark.sparkContext).value},"jvm":${JvmCounts.json}}"""

  /** The same for a checkpoint. */
  def savedCounters(spark: SparkSession): String = Counters.of(spark.sparkContext).saved

  /** Forgets what an earlier job of the same application has counted. */
  def resetCounters(spark: SparkSession): Unit = Counters.of(spark.sparkContext).reset()

  /** Counts on from where an earlier driver left off. */
  def restoreCounters(spark: SparkSession, saved: String): Unit = Counters.of(spark.sparkContext).restore(saved)

  /** Lets the sources read; see [[Gate]]. */
  def openGate(): Unit = Gate.open()

  /** Lets the sources plan no further epoch, and ends those of real-time mode. */
  def closeGate(): Unit = Gate.close()

  /** JSON: the queries in real-time mode that have ended their epoch because of that. */
  def heldQueries(): String = compact(render(Extraction.decompose(Gate.held)))

  /** How many executors the application has on its cluster. */
  def executors(spark: SparkSession): Int = StatePlaces.executors(spark).size

  /** Spreads the state of a query over the executors, see [[StatePlaces]]; returns how many tasks move. */
  def spreadState(spark: SparkSession, query: String): Int = StatePlaces.spread(spark, query)

  /** Makes what Spark writes for the tasks of each epoch smaller; see [[HadoopSettings.forgetOrigins]]. */
  def forgetOrigins(spark: SparkSession): Unit = HadoopSettings.forgetOrigins(spark.sparkContext.hadoopConfiguration)

  /** Ends this JVM soon after the process that started it. */
  def followProcess(pid: Long): Unit = Lifeline.follow(pid)

  /** Ends this JVM after some seconds, whatever it is doing. */
  def haltAfter(seconds: Int): Unit = Lifeline.haltAfter(seconds)

  /** Closes this JVM's state stores once no task uses them. */
  def closeStores(): Unit = StateStore.stop()

  /** The driver's own files in a checkpoint, on any file system that Spark can reach. */
  def checkpointFiles(spark: SparkSession, folder: String): CheckpointFiles = new CheckpointFiles(spark, folder)

  /** The same without a session. */
  def storedFiles(folder: String): CheckpointFiles = new CheckpointFiles(folder)

  /** Copies a job's checkpoint to another folder; without a session. */
  def checkpointCopy(source: String, target: String): CheckpointCopy = new CheckpointCopy(source, target)

  /** How many partitions each topic of a query has, as the clock tells its operators. */
  def setPartitions(query: String, topics: String): Unit = Clock.setPartitions(query, topics)

  /** Registries that tasks wait for: `{url: since, in epoch milliseconds}`. */
  def registryWaits(): String = RegistryWaits.json

  /** Looks into the state that an epoch of a query left; `node` is an operator with its inputs. */
  def stateReader(folder: String, number: Int, epoch: Long, node: String, evenGroups: Boolean): StateReader =
    new StateReader(new StoredOperator(folder, number, epoch, GroupKey(evenGroups)), node)

  /** Whether a table could read records of a registered schema, as [[AvroFit]] says it. */
  def fit(scan: String, isKey: Boolean, id: Long): String =
    AvroFit.json(IngestSpec.read(scan, chunked = false, realTime = false, steps = false), isKey, id)

  /** The time at a cluster, as [[BrokerClock]] says it; `client` are Kafka's properties as JSON. */
  def brokerClock(client: String): String = BrokerClock.json(parse(client).extract[Map[String, String]])

  /** A plan in memory, without Spark's engine: `rejoin test`. */
  def local(plan: String): LocalRun = new LocalRun(plan, new Counters)

  private def counters(frame: Dataset[_]): Counters = Counters.of(frame.sparkSession.sparkContext)
}
