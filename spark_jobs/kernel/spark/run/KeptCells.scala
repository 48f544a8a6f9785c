package org.apache.spark.sql.rejoin.run

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.state.RocksDB
import org.rocksdb.{RocksDB => InnerRocksDB}

import rejoin.core.state.CellCache

/** The cells that this JVM keeps in front of its stores, from one epoch to the next.
  *
  * Spark gives each load of a store an id of its own, which becomes that of the version that it commits. What is kept
  * is what a load has read and written; so it holds for the load of that version and for no other. Checkpoints that
  * have no such ids keep nothing. And it holds for one database: where Spark opens it anew, all that waited is in it.
  *
  * Together they take three times as much as RocksDB may beyond 512 MB, by the conf of each store. RocksDB needs these
  * 512 MB for the indices of its files: where they do not fit into its cache, each read of a cell reads an index of a
  * megabyte.
  */
object KeptCells {
  private final val OfRocksDBAloneMb = 512
  private final val TimesBeyond = 3

  private final class Kept(val cells: CellCache, val database: InnerRocksDB, var load: Option[String])

  private val stores = new mutable.HashMap[RocksDB, Kept]

  /** What the cells of all stores take beside so much for RocksDB. */
  def besideMb(rocksDBMb: Long): Long = math.max(rocksDBMb - OfRocksDBAloneMb, 0) * TimesBeyond

  /** What is kept of a store that a task has loaded, and is written to it later. */
  def of(store: RocksDB, behind: CellCache.Store): CellCache = synchronized {
    freeClosed()
    val (base, load) = StoreInternals.idsOfLoad(store)
    val database = StoreInternals.innerOf(store)
    val found = stores.remove(store)
    val share = besideMb(store.conf.totalMemoryUsageMB) * (1 << 20) / (stores.size + 1)
    val valid = found.filter(kept => Seq(base, load).contains(kept.load) && (kept.database eq database))
    valid.filter(_.load == base).foreach(kept => checkSnapshot(store, kept.cells))
    valid.foreach(_.cells.writesTo(behind))
    val kept = valid.filter(_.cells.narrow(share)).getOrElse {
      valid.foreach(_.cells.writeAll())
      found.foreach(_.cells.free())
      val isNew = StoreInternals.loadedVersion(store) == 0L
      new Kept(new CellCache(if (load.isEmpty) 0 else share, isNew), database, load)
    }
    kept.cells.writesTo(behind)
    kept.cells.closeGaps()
    kept.load = load
    stores(store) = kept
    kept.cells
  }

  /** Before a commit makes a snapshot, the store has all that waited. */
  private def checkSnapshot(store: RocksDB, cells: CellCache): Unit = {
    val version = StoreInternals.loadedVersion(store)
    if (cells.isAhead && StoreInternals.lastSnapshotVersion(store) == version) throw new IllegalStateException(
      s"Spark made a snapshot of version $version that nothing said was due: it lacks cells, and its folder in the " +
        "checkpoint must not be loaded")
  }

  /** Spark removes the folder of a store that it closes. */
  private def freeClosed(): Unit = stores.filterInPlace { (store, kept) =>
    val isOpen = store.localRootDir.exists()
    if (!isOpen) kept.cells.free()
    isOpen
  }
}
