package org.apache.spark.sql.rejoin.run

import java.util

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate
import transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.RocksDB
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
  * The changelog of the batch has what is written here at once. RocksDB has it when it leaves the kept cells, and
  * before a commit that makes a snapshot.
  *
  * @param writes
  *   takes what is written
  * @param kept
  *   cells that need not be read from the database, and are not all written to it yet
  * @param snapshot
  *   hears how much the batch writes
  */
final class StoreCells(db: RocksDB, writes: StoreWrites, kept: CellCache, snapshot: BatchSnapshot, group: Int)
    extends KeyedState {
  import StoreCells._

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
      val stored = db.multiGet(unknown.map(key(group, _)).toArray, Variable)
      unknown.iterator.zip(stored).foreach { case (cell, value) => found(cell, value) }
    }
  }

  private def read(cell: Array[Byte]): Array[Byte] = found(cell, db.get(key(group, cell), Variable))

  private def found(cell: Array[Byte], stored: Array[Byte]): Array[Byte] =
    if (stored == null) null
    else {
      val value = util.Arrays.copyOfRange(stored, ValueAt, ValueAt + fieldLength(stored, ValueRowAt))
      kept.putFound(group, cell, value)
      value
    }

  def put(cell: Array[Byte], value: Array[Byte]): Unit = {
    add(cell, value)
    end()
  }

  def remove(cell: Array[Byte]): Unit = {
    add(cell, null)
    end()
  }

  override def write(cells: Iterator[(Array[Byte], Array[Byte])]): Unit = {
    cells.foreach { case (cell, value) => add(cell, value) }
    end()
  }

  private def end(): Unit = {
    if (snapshot.isDue) kept.writeAll()
    writes.flush()
  }

  private def add(cell: Array[Byte], value: Array[Byte]): Unit = {
    val place = writes.place(key(group, cell))
    val stored = if (value == null) null else storedValue(value)
    writes.log(place, stored)
    snapshot.wrote(place.length + (if (stored == null) 0 else stored.length))
    val isLeft = if (value == null) kept.remove(group, cell) else !kept.put(group, cell, value)
    if (isLeft) writes.add(place, stored)
  }

  def names(tag: Char): Seq[Array[Byte]] = {
    kept.writeAll()
    db.prefixScan(beginning(group, NameRowAt - 1), Variable).map(entry => nameOf(entry.key))
      .filter(Cell.hasTag(_, tag)).toVector
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
    case task: StatefulProcessorHandleImpl => open(StoreInternals.storeOf(task))
    case driver =>
      driver.getMapState(Variable, Encoders.BINARY, Encoders.BINARY, TTLConfig.NONE)
      null
  }

  /** Makes the place of the cells in the database, where it is not there yet.
    *
    * @param leastInFile
    *   kept cells that are written to the database as a file of their own
    */
  private[run] def open(store: StoreInternals.Store, leastInFile: Int = StoreFiles.Least): Int => StoreCells = {
    val db = store.dbInstance()
    if (StoreInternals.isAskedForSnapshot(store)) StoreInternals.forceSnapshot(db)
    val writes = new StoreWrites(db, db.createColFamilyIfAbsent(Variable, isInternal = false))
    StoreInternals.silence(db)
    Compaction.set(db)
    val kept = KeptCells.of(db, new StoreFiles(db, writes, leastInFile))
    val snapshot = new BatchSnapshot(db)
    if (snapshot.isDue) kept.writeAll()
    new StoreCells(db, writes, kept, snapshot, _)
  }

  private[run] def key(group: Int, cell: Array[Byte]): Array[Byte] = {
    val bytes = beginning(group, NameAt + padded(cell.length))
    putField(bytes, NameRowAt, 16 + padded(cell.length))
    putField(bytes, NameRowAt + 16, cell.length)
    System.arraycopy(cell, 0, bytes, NameAt, cell.length)
    bytes
  }

  /** So many bytes, with what the keys of a group begin with. */
  private def beginning(group: Int, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.putInt(bytes, Start, GroupBytes)
    putField(bytes, GroupRowAt, length = 16)
    Platform.putInt(bytes, Start + GroupAt, group)
    bytes
  }

  private[run] def storedValue(value: Array[Byte]): Array[Byte] = {
    val stored = new Array[Byte](ValueAt + padded(value.length))
    putField(stored, ValueRowAt, value.length)
    System.arraycopy(value, 0, stored, ValueAt, value.length)
    stored
  }

  /** Writes the only field of the row that begins there: bytes, which follow the word of nulls and their own. */
  private def putField(bytes: Array[Byte], row: Int, length: Int): Unit =
    Platform.putLong(bytes, Start.toLong + row + 8, (16L << 32) | length)

  private def fieldLength(bytes: Array[Byte], row: Int): Int = Platform.getLong(bytes, Start.toLong + row + 8).toInt

  /** UnsafeRows are made of whole words. */
  private def padded(length: Int): Int = (length + 7) & ~7
}
