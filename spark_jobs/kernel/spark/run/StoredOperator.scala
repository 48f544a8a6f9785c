package org.apache.spark.sql.rejoin.run

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Using

import org.apache.hadoop.fs.Path
import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BinaryType, IntegerType, StructType}

import org.apache.spark.sql.rejoin.checkpoint.HadoopSettings
import rejoin.core.state.KeyedState

/** What a committed epoch left of one operator's state in a query's checkpoint: read, never written.
  *
  * Spark's own store copies the files of a partition into a local folder of this process and opens
  * the copy; the checkpoint is listed and read, nothing else. Needs no session.
  *
  * @param number
  *   Spark's of the operator within its query
  */
final class StoredOperator(folder: String, number: Int, epoch: Long, groupKey: GroupKey) {
  import StoredOperator._

  private val hadoop = HadoopSettings.forFilesIn(folder)
  private val files = CheckpointFileManager.create(new Path(folder), hadoop)

  /** The name of each partition's version: without it, files of an epoch that failed could be taken for it. */
  private val versions: Seq[String] = {
    implicit val formats: Formats = DefaultFormats
    (log("commits") \ "stateUniqueIds" \ number.toString).extract[Seq[Seq[String]]].map(_.head)
  }
  require(versions.nonEmpty, s"commits/$epoch names no state of operator $number")

  /** State stores read with the settings that the epoch was planned with. */
  private val settings: StateStoreConf = {
    implicit val formats: Formats = DefaultFormats
    val conf = new SQLConf
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 2)
    conf.setConfString("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    (log("offsets") \ "conf").extract[Map[String, String]].foreach { case (k, v) => conf.setConfString(k, v) }
    StateStoreConf(conf)
  }

  def partitions: Int = versions.size

  /** Spark's partition of a key group. */
  def partitionOf(group: Int): Int = Math.floorMod(GroupKey.hash(groupKey.of(group)), partitions)

  def open(partition: Int): StoredPartition = {
    val run = UUID.randomUUID()
    hadoop.set(StreamExecution.RUN_ID_KEY, run.toString)
    val id = StateStoreId(s"$folder/state", number.toLong, partition)
    val provider = StateStoreProvider.createAndInit(
      StateStoreProviderId(id, run),
      Spark.GroupSchema,
      Spark.ValueSchema,
      NoPrefixKeyStateEncoderSpec(Spark.GroupSchema),
      useColumnFamilies = true,
      settings,
      hadoop,
      useMultipleValuesPerKey = false,
      stateSchemaProvider = None)
    new StoredPartition(provider, epoch + 1, versions(partition), groupKey)
  }

  /** What an entry of one of Spark's logs says of the epoch as a whole: the line below its format. */
  private def log(name: String): JValue = {
    val text = Using.resource(files.open(new Path(s"$folder/$name/$epoch")))(in => new String(in.readAllBytes(), UTF_8))
    parse(text.linesIterator.drop(1).next())
  }
}

/** One partition of a [[StoredOperator]], open until it is closed. */
final class StoredPartition(provider: StateStoreProvider, version: Long, name: String, groupKey: GroupKey)
    extends AutoCloseable {
  import StoredOperator._

  private val store = provider.getReadStore(version, Some(name))
  store.asInstanceOf[StateStore].createColFamilyIfAbsent(
    StoreCells.Variable,
    Spark.KeySchema,
    Spark.ValueSchema,
    PrefixKeyScanStateEncoderSpec(Spark.KeySchema, 1))

  /** Group, name and value of every cell; cells of a group stand together. */
  def cells: Iterator[(Int, Array[Byte], Array[Byte])] =
    store.iterator(StoreCells.Variable).map { pair =>
      val group = groupKey.groupOf(pair.key.getStruct(0, 1).getInt(0))
      (group, pair.key.getStruct(1, 1).getBinary(0), pair.value.getBinary(0))
    }

  /** The cells of one key group; reading is all that can be done to them. */
  def group(group: Int): KeyedState = new KeyedState {
    def get(cell: Array[Byte]): Array[Byte] = {
      val value = store.get(Spark.key(groupKey.of(group), cell), StoreCells.Variable)
      if (value == null) null else value.getBinary(0)
    }
    def names(tag: Char): Seq[Array[Byte]] = throw new UnsupportedOperationException("a key is looked up, not searched")
    def put(cell: Array[Byte], value: Array[Byte]): Unit = throw new UnsupportedOperationException("read-only state")
    def remove(cell: Array[Byte]): Unit = throw new UnsupportedOperationException("read-only state")
  }

  def close(): Unit = {
    store.abort()
    provider.close()
  }
}

private object StoredOperator {

  /** How Spark keeps the map of [[StoreCells]]. */
  object Spark {
    val GroupSchema: StructType = new StructType().add("group", IntegerType)
    val ValueSchema: StructType = new StructType().add("value", BinaryType)
    val KeySchema: StructType = new StructType().add("key", GroupSchema).add("userKey", ValueSchema)
    private val project = UnsafeProjection.create(KeySchema)

    def key(group: Int, cell: Array[Byte]): UnsafeRow =
      project(new GenericInternalRow(Array[Any](
        new GenericInternalRow(Array[Any](group)),
        new GenericInternalRow(Array[Any](cell)))))
  }
}
