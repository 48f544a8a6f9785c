package org.apache.spark.sql.rejoin.ingest

import java.util
import java.util.Optional

import scala.jdk.CollectionConverters._

import org.apache.kafka.common.TopicPartition
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Extraction, Formats}

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, ReadLimit,
  ReportsSourceMetrics, SupportsRealTimeMode, SupportsTriggerAvailableNow}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.run.{Counters, References}

/** Whether sources may start another batch; closed by an orderly stop, which waits for the last one. */
object Gate {
  @volatile private var closed = false

  def isClosed: Boolean = closed
  def close(): Unit = closed = true
  def open(): Unit = closed = false
}

/** Spark's Kafka source, which starts no batch once the [[Gate]] is closed and never reads past given ends.
  *
  * Options beside Kafka's own: `rejoin.query` (for the counters), `rejoin.table` (the name in the
  * query's progress), `rejoin.ends`
  * (`{topic: {partition: offset}}`; a bounded table, of which unlisted partitions are not read),
  * `rejoin.loaded` (of the same form; the batch that reaches such an offset has a record more, with
  * [[Ingest.LoadedMarker]] as its timestamp type, whatever lies before the offset),
  * `rejoin.alignment` (an [[Alignment]]; no batch reads on while the table is too far ahead),
  * `rejoin.topic-ids` (`{topic: id}`, as a [[SourceGuard]] wants them).
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

  /** Topic and partition of what Spark plans to read, whose class it hides (a KafkaOffsetRange within).
    *
    * In this order, each time: a query without state writes a source partition's rows under the task's
    * number, and Spark keeps no order of its own from one driver to the next. Another one would skip, in
    * an epoch that is repeated, the rows of a partition that was not written, and double one that was.
    */
  private def place(planned: InputPartition): (String, Int) = {
    val range = planned.asInstanceOf[Product].productElement(0).asInstanceOf[Product]
    val at = range.productElement(0).asInstanceOf[TopicPartition]
    (at.topic, at.partition)
  }

  private type Ends = Map[String, Map[String, Long]]
  private type KafkaStream = MicroBatchStream
    with SupportsTriggerAvailableNow with SupportsRealTimeMode with ReportsSourceMetrics

  private implicit val formats: Formats = DefaultFormats

  private final class GatedTable(kafka: Table with SupportsRead) extends Table with SupportsRead {
    override def name(): String = "rejoin kafka"
    override def columns(): Array[org.apache.spark.sql.connector.catalog.Column] = kafka.columns()
    override def capabilities(): util.Set[TableCapability] = util.Set.of(TableCapability.MICRO_BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
      val scan = kafka.newScanBuilder(withSecrets(options)).build()
      def offsets(name: String): Option[Ends] = Option(options.get(name)).map(json => parse(json).extract[Ends])
      val loaded = offsets("rejoin.loaded").getOrElse(Map.empty)
      val alignment = Option(options.get("rejoin.alignment")).map(Alignment.read)
      val query = options.get("rejoin.query")
      val table = options.get("rejoin.table")
      val goesOn = !options.getBoolean("failOnDataLoss", true)
      val guard = () => new SourceGuard(table, idsOf(options), goesOn, clientOf(options))
      () => new GatedScan(scan, query, table, offsets("rejoin.ends"), loaded, alignment, guard)
    }
  }

  /** Spark's plans and logs show the options of a source: they hold the references. */
  private def withSecrets(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    new CaseInsensitiveStringMap(References.resolveAll(options.asCaseSensitiveMap.asScala.toMap).asJava)

  private def idsOf(options: CaseInsensitiveStringMap): Map[String, String] =
    parse(options.getOrDefault("rejoin.topic-ids", "{}")).extract[Map[String, String]]

  private def clientOf(options: CaseInsensitiveStringMap): Map[String, String] =
    options.asCaseSensitiveMap.asScala.toMap.collect {
      case (name, value) if name.startsWith("kafka.") => name.stripPrefix("kafka.") -> value
    }

  private final class GatedScan(
      kafka: Scan,
      query: String,
      table: String,
      ends: Option[Ends],
      loaded: Ends,
      alignment: Option[Alignment],
      guard: () => SourceGuard)
      extends Scan {
    override def readSchema(): StructType = kafka.readSchema()
    override def supportedCustomMetrics(): Array[CustomMetric] = kafka.supportedCustomMetrics()
    override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
      new GatedStream(
        kafka.toMicroBatchStream(checkpointLocation).asInstanceOf[KafkaStream],
        kafka.readSchema(),
        query,
        table,
        ends,
        loaded,
        alignment,
        guard())
  }

  private final class GatedStream(
      kafka: KafkaStream,
      schema: StructType,
      query: String,
      table: String,
      ends: Option[Ends],
      loaded: Ends,
      alignment: Option[Alignment],
      guard: SourceGuard)
      extends MicroBatchStream
      with SupportsTriggerAvailableNow
      with SupportsRealTimeMode
      with ReportsSourceMetrics {
    private val name = s"$query/$table" // a query's name has no slash

    override def latestOffset(start: Offset, limit: ReadLimit): Offset =
      if (Gate.isClosed) start
      else {
        guard.checkTopics()
        val next = bounded(kafka.latestOffset(start, limit))
        if (alignment.exists(isAhead(_, next != start))) start else next
      }

    private def isAhead(alignment: Alignment, hasMore: Boolean): Boolean = {
      Alignment.tell(name, alignment, hasMore)
      hasMore && Alignment.isAhead(name, Counters.of(SparkContext.getOrCreate()))
    }

    override def latestOffset(): Offset = throw new UnsupportedOperationException("the start offset is needed")
    override def initialOffset(): Offset = bounded(kafka.initialOffset())

    /** Also where the topic goes on: what lies beyond the ends is not lag. */
    override def reportLatestOffset(): Offset = Option(kafka.reportLatestOffset()).map(bounded).orNull

    override def deserializeOffset(json: String): Offset = kafka.deserializeOffset(json)
    override def getDefaultReadLimit: ReadLimit = kafka.getDefaultReadLimit
    override def prepareForTriggerAvailableNow(): Unit = kafka.prepareForTriggerAvailableNow()
    override def prepareForRealTimeMode(): Unit = kafka.prepareForRealTimeMode()
    override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
      guard.checkTopics()
      val lost = guard.checkRecords(parse(start.json()).extract[Ends])
      if (lost > 0) Counters.of(SparkContext.getOrCreate()).lost(query, table, lost)
      kafka.planInputPartitions(start, end).sortBy(GatedKafka.place) ++ loadedBy(start, end)
    }
    override def planInputPartitions(start: Offset): Array[InputPartition] = kafka.planInputPartitions(start)
    override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = kafka.mergeOffsets(offsets)
    override def createReaderFactory(): PartitionReaderFactory = new GatedReaders(kafka.createReaderFactory(), schema)
    override def metrics(latestConsumed: Optional[Offset]): util.Map[String, String] = kafka.metrics(latestConsumed)
    override def commit(end: Offset): Unit = kafka.commit(end)
    override def stop(): Unit = {
      if (alignment.isDefined) Alignment.forget(name)
      guard.close()
      kafka.stop()
    }
    override def toString: String = table

    /** A partition of markers if partitions of the topics are loaded with this batch. */
    private def loadedBy(start: Offset, end: Offset): Option[InputPartition] = {
      val (from, to) = (parse(start.json()).extract[Ends], parse(end.json()).extract[Ends])
      def at(offsets: Ends, topic: String, partition: String): Long =
        offsets.get(topic).flatMap(_.get(partition)).getOrElse(0L)
      val reached = for {
        (topic, offsets) <- loaded.toSeq
        (partition, offset) <- offsets
        if at(from, topic, partition) < offset && at(to, topic, partition) >= offset
      } yield LoadedMarker(topic, partition.toInt, offset)
      Option.when(reached.nonEmpty)(LoadedMarkers(reached))
    }

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

  private final case class LoadedMarker(topic: String, partition: Int, offset: Long)

  private final case class LoadedMarkers(markers: Seq[LoadedMarker]) extends InputPartition

  /** Kafka's readers, and one for markers. */
  private final class GatedReaders(kafka: PartitionReaderFactory, schema: StructType) extends PartitionReaderFactory {
    override def createReader(partition: InputPartition): PartitionReader[InternalRow] = partition match {
      case LoadedMarkers(markers) => new MarkerReader(markers.iterator, schema)
      case records => kafka.createReader(records)
    }
  }

  private final class MarkerReader(markers: Iterator[LoadedMarker], schema: StructType)
      extends PartitionReader[InternalRow] {
    private val toUnsafe = UnsafeProjection.create(schema)
    private var row: InternalRow = _

    override def next(): Boolean = markers.hasNext && {
      val LoadedMarker(topic, partition, offset) = markers.next()
      row = toUnsafe(new GenericInternalRow(schema.fieldNames.map[Any] {
        case "topic" => UTF8String.fromString(topic)
        case "partition" => partition
        case "offset" => offset
        case "timestamp" => 0L
        case "timestampType" => Ingest.LoadedMarker
        case _ => null
      }))
      true
    }
    override def get(): InternalRow = row
    override def close(): Unit = ()
  }
}
