package org.apache.spark.sql.rejoin.run

import java.lang.management.ManagementFactory
import java.nio.ByteBuffer
import java.util.{Arrays, HexFormat, UUID}

import scala.collection.mutable
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.rocksdb.Logger

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.encoders.{ExpressionEncoder, encoderFor}
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate
import transformwithstate.statefulprocessor.ImplicitGroupingKeyTracker
import transformwithstate.statevariables.MapStateImpl
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf

import rejoin.core.row.{Envelope, GroupBatch, RowKind}
import rejoin.core.state.{Cell, KeyedState}

/** One partition of Spark's RocksDB store in a folder, written through [[StoreCells]] or through Spark's map state.
  *
  * @param blockKb
  *   of RocksDB's files
  * @param leastInFile
  *   kept cells that are handed over as a file
  */
final class StoreCellsRun(folder: String, memoryMb: Int, blockKb: Int, leastInFile: Int) {
  private final val Groups = 64
  private val hex = HexFormat.of()
  private var provider = open()
  private val chosen = new Random(11)
  private var version = 0L
  private val ids = mutable.HashMap[Long, Option[String]](0L -> None)

  private def open(): StateStoreProvider = {
    val conf = new SQLConf
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 2)
    conf.setConf(SQLConf.STATE_STORE_PROVIDER_CLASS, classOf[RocksDBStateStoreProvider].getName)
    Seq(
      "changelogCheckpointing.enabled" -> "true",
      "trackTotalNumberOfRows" -> "false",
      "boundedMemoryUsage" -> "true",
      "blockSizeKB" -> blockKb.toString,
      "maxMemoryUsageMB" -> memoryMb.toString).foreach { case (key, value) => conf.setConfString(s"spark.sql.streaming.stateStore.rocksdb.$key", value) }
    val run = UUID.randomUUID()
    val hadoop = new Configuration
    hadoop.set(StreamExecution.RUN_ID_KEY, run.toString)
    StateStoreProvider.createAndInit(
      StateStoreProviderId(StateStoreId(folder, 0L, 0), run),
      StoredOperator.Spark.GroupSchema,
      StoredOperator.Spark.ValueSchema,
      NoPrefixKeyStateEncoderSpec(StoredOperator.Spark.GroupSchema),
      useColumnFamilies = true,
      StateStoreConf(conf),
      hadoop,
      useMultipleValuesPerKey = false,
      stateSchemaProvider = None)
  }

  /** Applies `[group, cell, value]` in hexadecimal, value null to remove, in a version of its own, half of each group's
    * together and half one by one; gives what each `[group, cell]` of `readsJson` then has.
    */
  def run(through: String, writesJson: String, readsJson: String): String = inVersion(through) { state =>
    write(state, writesJson)
    readAhead(state, readsJson)
    compact(render(JArray(parse(readsJson).children.map {
      case JArray(List(JInt(group), JString(cell))) =>
        Option(state(group.toInt).get(bytes(cell))).fold[JValue](JNull)(value => JString(hex.formatHex(value)))
      case other => throw new IllegalArgumentException(s"no cell: $other")
    })))
  }

  /** Every other cell is read ahead of the others. */
  private def readAhead(state: Int => KeyedState, readsJson: String): Unit =
    parse(readsJson).children.collect { case JArray(List(JInt(group), JString(cell))) => (group.toInt, bytes(cell)) }
      .grouped(2).map(_.head).toSeq.groupMap(_._1)(_._2).foreach { case (group, cells) =>
        state(group) match {
          case stored: StoreCells => stored.readAhead(cells)
          case _ => // Spark's map state
        }
      }

  /** Which of `[group, cell]` are kept once all of them were read ahead, and none was asked for. */
  def keptAhead(readsJson: String): String = inVersion("cells") { state =>
    val asked = parse(readsJson).children.collect { case JArray(List(JInt(group), JString(cell))) => (group.toInt, cell) }
    asked.groupMap(_._1)(_._2).foreach { case (group, cells) =>
      state(group).asInstanceOf[StoreCells].readAhead(cells.map(bytes))
    }
    val kept = KeptCells.of(database, null) // nothing waits that was only read
    compact(render(JArray(asked.map { case (group, cell) => JBool(kept.keeps(group, bytes(cell))) })))
  }

  /** Applies writes, and then fails. */
  def fail(through: String, writesJson: String): Unit = {
    store = provider.getStore(version, ids(version))
    write(opened(through), writesJson)
    store.abort()
  }

  /** A task ends between the load of its store and the opening of its cells; the next load opens the database anew. */
  def failBeforeOpening(): Unit = provider.getStore(version, ids(version)).abort()

  /** The next version is made from this one. */
  def goBackTo(older: Long): Unit = version = older

  private def write(state: Int => KeyedState, writesJson: String): Unit =
    parse(writesJson).children.groupMap {
      case JArray(JInt(group) :: _) => group.toInt
      case other => throw new IllegalArgumentException(s"no write: $other")
    } {
      case JArray(List(_, JString(cell), JString(value))) => (bytes(cell), bytes(value))
      case JArray(List(_, JString(cell), _)) => (bytes(cell), null)
      case other => throw new IllegalArgumentException(s"no write: $other")
    }.foreach { case (group, writes) =>
      val cells = state(group)
      val (together, alone) = writes.splitAt(writes.size / 2)
      cells.write(together.iterator)
      alone.foreach {
        case (cell, null) => cells.remove(cell)
        case (cell, value) => cells.put(cell, value)
      }
    }

  /** The names of a group's cells with this tag. */
  def names(through: String, group: Int, tag: String): String = inVersion(through) { state =>
    compact(render(JArray(state(group).names(tag.head).map(name => JString(hex.formatHex(name))).toList)))
  }

  /** The cells' names with this tag, in the order in which a batch with a row for each of their keys visits them. */
  def visited(namesJson: String, tag: String): String = {
    val told = mutable.Queue.empty[Array[Byte]]
    val batch = new GroupBatch(Some(told ++= _))
    parse(namesJson).children.foreach {
      case JString(name) =>
        batch.add(Envelope(0, 0, RowKind.Insert, 0L, 0, 0L, Cell.keyOf(bytes(name)), Array.emptyByteArray, 0L))
      case other => throw new IllegalArgumentException(s"no name: $other")
    }
    val found = List.newBuilder[JValue]
    batch.foreachKey { rows =>
      require(Arrays.equals(told.dequeue(), rows.key), "keys are told before they are visited, in their order")
      found += JString(hex.formatHex(Cell.key(tag.head, rows.key)))
    }
    require(told.isEmpty, "no other keys are told")
    compact(render(JArray(found.result())))
  }

  /** All entries as they stand in RocksDB where the checkpoint is loaded. */
  def entries(): String = inVersion("map") { _ =>
    val found = database.prefixScan(Array.emptyByteArray, StoreCells.Variable)
    compact(render(JArray(found.map(e => JString(s"${hex.formatHex(e.key)} ${hex.formatHex(e.value)}")).toList)))
  }

  /** How many entries there are where the checkpoint is loaded. */
  def count(): Int = inVersion("map")(_ => database.prefixScan(Array.emptyByteArray, StoreCells.Variable).size)

  /** Applies writes in a version of which Spark makes a snapshot, which nothing has said before. */
  def runToSnapshot(writesJson: String): Unit = inVersion("cells") { state =>
    write(state, writesJson)
    StoreInternals.forceSnapshot(database)
  }

  /** Applies writes in a version of which Spark's coordinator wants a snapshot. */
  def runAsked(writesJson: String): Unit = inVersion("cells", isAsked = true)(write(_, writesJson))

  /** How many entries RocksDB's write buffers have, once all cells are written to it. */
  def inWriteBuffers(): Long = inVersion("cells") { state =>
    state(0).names('K')
    StoreInternals.innerOf(database).getLongProperty("rocksdb.num-entries-active-mem-table")
  }

  /** Reads and rewrites `size` of `keys` cells in each of so many versions.
    *
    * Gives nanoseconds of the thread: per version to open the cells, per cell to read and to write it, and for its part
    * of the commit.
    */
  def cost(through: String, keys: Int, size: Int, versions: Int, valueBytes: Int): String = {
    val random = new Random(7)
    var at = threadNs()
    def lap(): Long = {
      val before = at
      at = threadNs()
      at - before
    }
    val spent = new Array[Long](4)
    for (_ <- 1 to versions) {
      val chosen = if (size >= keys) Array.range(0, keys) else Array.fill(size)(random.nextInt(keys))
      val names = chosen.sortBy(_ % Groups).map(key => (key % Groups, name(key)))
      lap()
      inVersion(through) { state =>
        spent(0) += lap()
        val values = names.map { case (group, name) => state(group).get(name) }
        spent(1) += lap()
        values.indices.groupBy(names(_)._1).foreach { case (group, of) =>
          state(group).write(of.iterator.map { i =>
            val value = if (values(i) == null) new Array[Byte](valueBytes) else values(i)
            value(0) = (value(0) + 1).toByte
            (names(i)._2, value)
          })
        }
        spent(2) += lap()
      }
      spent(3) += lap()
    }
    spent.zip(Seq(versions, versions * size, versions * size, versions * size)).map { case (ns, by) => ns / by }
      .mkString("[", ",", "]")
  }

  /** Writes a cell for each of so many keys, a million in a version, in no order. */
  def fill(keys: Int, valueBytes: Int): Unit =
    chosen.shuffle((0 until keys by 1_000).toVector).grouped(1_000).foreach { starts =>
      inVersion("cells") { state =>
        val of = starts.flatMap(start => start until math.min(start + 1_000, keys)).groupBy(_ % Groups)
        of.foreach { case (group, keys) =>
          state(group).write(keys.iterator.map(key => (name(key), chosen.nextBytes(valueBytes))))
        }
      }
    }

  /** Reads the cells of `size` keys, other ones each time, in the order in which a batch visits them.
    *
    * Gives nanoseconds of the thread for one cell.
    *
    * @param isAhead
    *   whether cells are read ahead of being asked for, as in a batch
    */
  def readCost(keys: Int, size: Int, isAhead: Boolean): Long = {
    val groups = Array.fill(size)(chosen.nextInt(keys)).distinct.groupBy(_ % Groups)
      .map { case (group, keys) => (group, inOrder(keys.map(name))) }
    inVersion("cells") { state =>
      val before = threadNs()
      groups.foreach { case (group, names) =>
        val cells = state(group).asInstanceOf[StoreCells]
        names.grouped(64).foreach { some =>
          if (isAhead) cells.readAhead(some.toSeq)
          some.foreach(name => require(cells.get(name) != null, "every cell was written"))
        }
      }
      (threadNs() - before) / size
    }
  }

  private def inOrder(names: Array[Array[Byte]]): Array[Array[Byte]] = {
    Arrays.sort(names, Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte]))
    names
  }

  private def threadNs(): Long = ManagementFactory.getThreadMXBean.getCurrentThreadCpuTime

  /** The header cell of a join key of one BIGINT. */
  private def name(key: Int): Array[Byte] =
    Cell.key('K', ByteBuffer.allocate(16).putLong(8, key * 0x9e3779b97f4a7c15L).array)

  private var store: StateStore = _

  /** What RocksDB's own threads log at least, once the cells were opened. */
  def logLevel(): String = inVersion("cells") { _ =>
    val logger = classOf[RocksDB].getDeclaredMethod("dbLogger")
    logger.setAccessible(true)
    logger.invoke(database).asInstanceOf[Logger].infoLogLevel.toString
  }

  /** By how much a level of RocksDB's files is larger than the one above it, once the cells were opened. */
  def levelGrowth(): Double = inVersion("cells") { _ =>
    StoreInternals.innerOf(database).getOptions(null).maxBytesForLevelMultiplier()
  }

  private def rocksDBStore = store.asInstanceOf[RocksDBStateStoreProvider#RocksDBStateStore]
  private def database: RocksDB = rocksDBStore.dbInstance()

  private def opened(through: String): Int => KeyedState =
    if (through == "cells") StoreCells.open(rocksDBStore, leastInFile)
    else {
      val cells = new MapCells(store)
      cells.of(_)
    }

  /** Spark's map state knows of no cells that wait, so that it gets a database of its own from the checkpoint. */
  private def inVersion[T](through: String, isAsked: Boolean = false)(use: (Int => KeyedState) => T): T = {
    if (through == "map") {
      provider.close()
      provider = open()
    }
    store = provider.getStore(version, ids(version), isAsked)
    val result = try use(opened(through)) catch { case e: Throwable => store.abort(); throw e }
    version = store.commit()
    ids(version) = store.getStateStoreCheckpointInfo().stateStoreCkptId
    result
  }

  private def bytes(text: String): Array[Byte] = hex.parseHex(text)

  def close(): Unit = provider.close()
}

/** Cells as Spark itself keeps a map. */
private final class MapCells(store: StateStore) extends KeyedState {
  private val binary = encoder(encoderFor(Encoders.BINARY))
  private val map = new MapStateImpl[Array[Byte], Array[Byte]](
    store,
    StoreCells.Variable,
    encoder(encoderFor(Encoders.scalaInt)),
    binary,
    binary)

  private def encoder(of: ExpressionEncoder[_]): ExpressionEncoder[Any] = of.asInstanceOf[ExpressionEncoder[Any]]

  def of(group: Int): this.type = {
    ImplicitGroupingKeyTracker.setImplicitKey(group)
    this
  }

  def get(cell: Array[Byte]): Array[Byte] = map.getValue(cell)
  def put(cell: Array[Byte], value: Array[Byte]): Unit = map.updateValue(cell, value)
  def remove(cell: Array[Byte]): Unit = map.removeKey(cell)
  def names(tag: Char): Seq[Array[Byte]] = map.keys().filter(Cell.hasTag(_, tag)).toVector
}
