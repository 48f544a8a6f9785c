package org.apache.spark.sql.rejoin

import java.util
import java.util.Optional

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Extraction, Formats}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read.streaming.{
  MicroBatchStream,
  Offset,
  PartitionOffset,
  ReadLimit,
  ReportsSourceMetrics,
  SupportsRealTimeMode,
  SupportsTriggerAvailableNow
}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Whether sources may start another batch; closed by an orderly stop, which waits for the last one. */
object Gate {
  @volatile private var closed = false

  def isClosed: Boolean = closed
  def close(): Unit = closed = true
  def open(): Unit = closed = false
}

/** Spark's Kafka source, which starts no batch once the [[Gate]] is closed and never reads past given ends.
  *
  * Options beside Kafka's own: `rejoin.table` (the name in the query's progress), `rejoin.ends`
  * (`{topic: {partition: offset}}`; a bounded table, of which unlisted partitions are not read).
  */
final class GatedKafka extends TableProvider {
  private lazy val kafka = DataSource
    .lookupDataSource("kafka", SQLConf.get)
    .getDeclaredConstructor()
    .newInstance()
    .asInstanceOf[TableProvider]

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = kafka.inferSchema(options)
  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table =
    new GatedKafka.GatedTable(kafka.getTable(schema, partitioning, properties).asInstanceOf[Table with SupportsRead])
}

object GatedKafka {
  private type Ends = Map[String, Map[String, Long]]
  private type KafkaStream = MicroBatchStream
    with SupportsTriggerAvailableNow with SupportsRealTimeMode with ReportsSourceMetrics

  private implicit val formats: Formats = DefaultFormats

  private final class GatedTable(kafka: Table with SupportsRead) extends Table with SupportsRead {
    override def name(): String = "rejoin kafka"
    override def columns(): Array[org.apache.spark.sql.connector.catalog.Column] = kafka.columns()
    override def capabilities(): util.Set[TableCapability] = util.Set.of(TableCapability.MICRO_BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
      val scan = kafka.newScanBuilder(options).build()
      val ends = Option(options.get("rejoin.ends")).map(json => parse(json).extract[Ends])
      () => new GatedScan(scan, options.get("rejoin.table"), ends)
    }
  }

  private final class GatedScan(kafka: Scan, table: String, ends: Option[Ends]) extends Scan {
    override def readSchema(): StructType = kafka.readSchema()
    override def supportedCustomMetrics(): Array[CustomMetric] = kafka.supportedCustomMetrics()
    override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
      new GatedStream(kafka.toMicroBatchStream(checkpointLocation).asInstanceOf[KafkaStream], table, ends)
  }

  private final class GatedStream(kafka: KafkaStream, table: String, ends: Option[Ends])
      extends MicroBatchStream
      with SupportsTriggerAvailableNow
      with SupportsRealTimeMode
      with ReportsSourceMetrics {

    override def latestOffset(start: Offset, limit: ReadLimit): Offset =
      if (Gate.isClosed) start else bounded(kafka.latestOffset(start, limit))

    override def latestOffset(): Offset = throw new UnsupportedOperationException("the start offset is needed")
    override def initialOffset(): Offset = bounded(kafka.initialOffset())

    /** Also where the topic goes on: what lies beyond the ends is not lag. */
    override def reportLatestOffset(): Offset = Option(kafka.reportLatestOffset()).map(bounded).orNull

    override def deserializeOffset(json: String): Offset = kafka.deserializeOffset(json)
    override def getDefaultReadLimit: ReadLimit = kafka.getDefaultReadLimit
    override def prepareForTriggerAvailableNow(): Unit = kafka.prepareForTriggerAvailableNow()
    override def prepareForRealTimeMode(): Unit = kafka.prepareForRealTimeMode()
    override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] =
      kafka.planInputPartitions(start, end)
    override def planInputPartitions(start: Offset): Array[InputPartition] = kafka.planInputPartitions(start)
    override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = kafka.mergeOffsets(offsets)
    override def createReaderFactory(): PartitionReaderFactory = kafka.createReaderFactory()
    override def metrics(latestConsumed: Optional[Offset]): util.Map[String, String] = kafka.metrics(latestConsumed)
    override def commit(end: Offset): Unit = kafka.commit(end)
    override def stop(): Unit = kafka.stop()
    override def toString: String = table

    private def bounded(offset: Offset): Offset = ends.fold(offset) { ends =>
      val upTo = for {
        (topic, offsets) <- parse(offset.json()).extract[Ends]
        ended <- ends.get(topic)
      } yield topic -> offsets.collect { case (partition, at) if ended.contains(partition) =>
        partition -> math.min(at, ended(partition))
      }
      kafka.deserializeOffset(compact(render(Extraction.decompose(upTo))))
    }
  }
}
