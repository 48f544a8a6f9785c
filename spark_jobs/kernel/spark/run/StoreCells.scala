package org.apache.spark.sql.rejoin.run

import java.util

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate
import transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBStateStoreProvider}
import org.apache.spark.sql.streaming.{StatefulProcessorHandle, TTLConfig}
import org.apache.spark.unsafe.Platform

import rejoin.core.state.{Cell, CellCache, KeyedState}

/** The cells of a key group in the RocksDB of a task.
  *
  * They are the entries of a map variable of transformWithState, byte for byte, so that whatever reads Spark's state
  * finds them. Spark's own `MapState` runs a dozen generated projections for one entry; here its bytes are written in
  * place:
  * {{{
  * key   : length of what concerns the group (4 bytes), 0 (1), row (row (group)), 0 (1), row (row (name of the cell))
  * value : 0 (1), row (value of the cell)
  * }}}
  * The zeros are the version of Spark's encoding; the rows are UnsafeRows.
  *
  * @param writes
  *   takes what is written to the database
  * @param kept
  *   cells that need not be read from the database
  * @param snapshot
  *   hears how much the batch writes
  */
final class StoreCells(db: RocksDB, writes: StoreWrites, kept: CellCache, snapshot: BatchSnapshot, group: Int)
    extends KeyedState {
  import StoreCells._

  private val beginning = new Array[Byte](NameRowAt)
  Platform.putInt(beginning, Start, GroupBytes)
  putField(beginning, GroupRowAt, length = 16)
  Platform.putInt(beginning, Start + GroupAt, group)

  /** Whether no read goes to the database. */
  def isInMemory: Boolean = kept.isComplete

  def get(cell: Array[Byte]): Array[Byte] = {
    val value = kept.get(group, cell)
    if (value != null || !kept.mayLack(group, cell)) value else read(cell)
  }

  /** Reads cells that soon will be asked for, by one call: RocksDB then finds those of one block together. */
  def readAhead(cells: Seq[Array[Byte]]): Unit = if (kept.mayKeep) {
    val unknown = cells.filter(cell => kept.mayLack(group, cell) && !kept.keeps(group, cell))
    if (unknown.nonEmpty) {
      val stored = db.multiGet(unknown.map(key).toArray, Variable)
      unknown.iterator.zip(stored).foreach { case (cell, value) => found(cell, value) }
    }
  }

  private def read(cell: Array[Byte]): Array[Byte] = found(cell, db.get(key(cell), Variable))

  private def found(cell: Array[Byte], stored: Array[Byte]): Array[Byte] =
    if (stored == null) null
    else {
      val value = util.Arrays.copyOfRange(stored, ValueAt, ValueAt + fieldLength(stored, ValueRowAt))
      kept.putFound(group, cell, value)
      value
    }

  def put(cell: Array[Byte], value: Array[Byte]): Unit = {
    add(cell, value)
    writes.flush()
  }

  def remove(cell: Array[Byte]): Unit = {
    add(cell, null)
    writes.flush()
  }

  override def write(cells: Iterator[(Array[Byte], Array[Byte])]): Unit = {
    cells.foreach { case (cell, value) => add(cell, value) }
    writes.flush()
  }

  private def add(cell: Array[Byte], value: Array[Byte]): Unit = {
    val place = key(cell)
    if (value == null) {
      writes.add(place, null)
      snapshot.wrote(place.length)
      kept.remove(group, cell)
    } else {
      val stored = new Array[Byte](ValueAt + padded(value.length))
      putField(stored, ValueRowAt, value.length)
      System.arraycopy(value, 0, stored, ValueAt, value.length)
      writes.add(place, stored)
      snapshot.wrote(place.length + stored.length)
      kept.put(group, cell, value)
    }
  }

  def names(tag: Char): Seq[Array[Byte]] =
    db.prefixScan(util.Arrays.copyOf(beginning, NameRowAt - 1), Variable).map(entry => nameOf(entry.key))
      .filter(Cell.hasTag(_, tag)).toVector

  private def key(cell: Array[Byte]): Array[Byte] = {
    val bytes = util.Arrays.copyOf(beginning, NameAt + padded(cell.length))
    putField(bytes, NameRowAt, 16 + padded(cell.length))
    putField(bytes, NameRowAt + 16, cell.length)
    System.arraycopy(cell, 0, bytes, NameAt, cell.length)
    bytes
  }

  private def nameOf(key: Array[Byte]): Array[Byte] =
    util.Arrays.copyOfRange(key, NameAt, NameAt + fieldLength(key, NameRowAt + 16))
}

object StoreCells {
  final val Variable = "cells"
  private final val Start = Platform.BYTE_ARRAY_OFFSET

  // places in a key
  private final val GroupRowAt = 5
  private final val GroupBytes = 33
  private final val GroupAt = GroupRowAt + 24
  private final val NameRowAt = 4 + GroupBytes + 1
  private final val NameAt = NameRowAt + 32

  // places in a value
  private final val ValueRowAt = 1
  private final val ValueAt = ValueRowAt + 16

  /** The cells of a task, by key group; null on the driver, which asks only which variables an operator has. */
  def open(handle: StatefulProcessorHandle): Int => StoreCells = handle match {
    case task: StatefulProcessorHandleImpl =>
      StoreInternals.storeOf(task) match {
        case store: RocksDBStateStoreProvider#RocksDBStateStore => open(store.dbInstance())
        case other => throw new IllegalStateException(s"state is kept in RocksDB, not in ${other.getClass.getName}")
      }
    case driver =>
      driver.getMapState(Variable, Encoders.BINARY, Encoders.BINARY, TTLConfig.NONE)
      null
  }

  /** Makes the place of the cells in the database, where it is not there yet. */
  private[run] def open(db: RocksDB): Int => StoreCells = {
    val writes = new StoreWrites(db, db.createColFamilyIfAbsent(Variable, isInternal = false))
    StoreInternals.silence(db)
    Compaction.set(db)
    val kept = KeptCells.of(db)
    val snapshot = new BatchSnapshot(db)
    new StoreCells(db, writes, kept, snapshot, _)
  }

  /** Writes the only field of the row that begins there: bytes, which follow the word of nulls and their own. */
  private def putField(bytes: Array[Byte], row: Int, length: Int): Unit =
    Platform.putLong(bytes, Start.toLong + row + 8, (16L << 32) | length)

  private def fieldLength(bytes: Array[Byte], row: Int): Int = Platform.getLong(bytes, Start.toLong + row + 8).toInt

  /** UnsafeRows are made of whole words. */
  private def padded(length: Int): Int = (length + 7) & ~7
}
