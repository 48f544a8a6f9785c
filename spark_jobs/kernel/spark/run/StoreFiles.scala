package org.apache.spark.sql.rejoin.run

import java.io.File
import java.util.{List => JList, UUID}

import org.apache.spark.sql.execution.streaming.state.RocksDB
import org.rocksdb.{EnvOptions, IngestExternalFileOptions, SstFileWriter}

import rejoin.core.state.CellCache

/** Writes kept cells to the RocksDB of a task: many of them as a file that RocksDB takes as it is, fewer through its
  * write buffers.
  *
  * A cell then takes no place in a write buffer, for which RocksDB compares its key with some twenty others
  * (docs/decisions/0026-kept-cells-are-handed-over-as-files.md).
  *
  * @param least
  *   cells that make a file
  */
private[run] final class StoreFiles(db: RocksDB, writes: StoreWrites, least: Int) extends CellCache.Store {
  private var file: NewFile = _

  def begin(count: Int): Boolean = {
    if (count >= least) {
      writes.flush() // what is collected there is older
      file = new NewFile(db)
    }
    file != null
  }

  def add(group: Int, cell: Array[Byte], value: Array[Byte]): Unit = {
    val place = writes.place(StoreCells.key(group, cell))
    val stored = StoreCells.storedValue(value)
    if (file == null) writes.add(place, stored)
    else try file.put(place, stored) catch { case e: Throwable => closeFile(); throw e }
  }

  def flush(): Unit =
    if (file == null) writes.flush()
    else try file.handOver() finally closeFile()

  private def closeFile(): Unit = {
    file.close()
    file = null
  }
}

private[run] object StoreFiles {
  final val Least = 100_000
}

/** A file of RocksDB's that is not part of the database until it is handed over. */
private final class NewFile(db: RocksDB) extends AutoCloseable {
  private val path = new File(db.localRootDir, s"cells-${UUID.randomUUID()}.sst")
  private val environment = new EnvOptions
  private val writer = new SstFileWriter(environment, StoreInternals.optionsOf(db))
  writer.open(path.getPath)

  /** Places come in their order as unsigned bytes, each once. */
  def put(place: Array[Byte], value: Array[Byte]): Unit = writer.put(place, value)

  def handOver(): Unit = {
    writer.finish()
    val options = new IngestExternalFileOptions().setMoveFiles(true).setWriteGlobalSeqno(false)
    try StoreInternals.innerOf(db).ingestExternalFile(JList.of(path.getPath), options)
    finally options.close()
  }

  def close(): Unit = {
    writer.close()
    environment.close()
    path.delete()
  }
}
