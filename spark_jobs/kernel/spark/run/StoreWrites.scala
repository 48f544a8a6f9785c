package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBStateStoreProvider}
import org.apache.spark.unsafe.Platform
import org.rocksdb.WriteBatch

import rejoin.core.row.GrowingBytes

/** Writes to the RocksDB of a task, many by one call, and to Spark's changelog, which hears of each change at once.
  *
  * Those to RocksDB are collected in the form that RocksDB itself has for them (`write_batch.cc`):
  * {{{
  * 0 (8 bytes), number of entries (4 bytes, little-endian), and of each entry
  * 1, length of the key, key, length of the value, value  : where it is put
  * 0, length of the key, key                              : where it is deleted
  * }}}
  *
  * @param variable
  *   the number of the map variable, which keys begin with
  */
private[run] final class StoreWrites(db: RocksDB, variable: Short) extends GrowingBytes(64 << 10) {
  import StoreWrites._

  private val inner = StoreInternals.innerOf(db)
  private val options = StoreInternals.writeOptions(db)
  private val changelog = StoreInternals.changelogOf(db)
  private var count = 0

  begin()

  /** What a key of the variable is in the database. */
  def place(key: Array[Byte]): Array[Byte] = RocksDBStateStoreProvider.encodeStateRowWithPrefix(key, variable)

  /** The changelog has this of a place, as from Spark's own `put` and `remove`; null where it is deleted. */
  def log(place: Array[Byte], value: Array[Byte]): Unit =
    changelog.foreach(log => if (value == null) log.delete(place) else log.put(place, value))

  /** Of a value that is null, the place is deleted. */
  def add(place: Array[Byte], value: Array[Byte]): Unit = {
    count += 1
    if (value == null) byte(0).varLong(place.length).write(place)
    else byte(1).varLong(place.length).write(place).varLong(value.length).write(value)
    if (size > MostBytes) flush()
  }

  /** The database has what was added, once this returns. */
  def flush(): Unit = if (count > 0) {
    db.updateMemoryUsageIfNeeded()
    Platform.putInt(bytes, CountAt, count)
    val batch = new WriteBatch(result())
    try inner.write(options, batch)
    finally batch.close()
    begin()
  }

  private def begin(): Unit = {
    reset().write(NoEntries)
    count = 0
  }
}

private object StoreWrites {
  private final val MostBytes = 1 << 20
  private final val CountAt = Platform.BYTE_ARRAY_OFFSET + 8L
  private final val NoEntries = new Array[Byte](12)
}
