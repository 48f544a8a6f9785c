package org.apache.spark.sql.rejoin.run

import java.util

import org.apache.spark.sql.execution.streaming.state.RocksDB
import org.rocksdb.{MutableColumnFamilyOptions, RocksDB => InnerRocksDB}

/** How RocksDB merges the files of a store.
  *
  * Keys of a state come in no order, so each merge of a level rewrites what the next level has of the same keys: about
  * as many times as that is larger. With a factor of 3 instead of RocksDB's 10, and four times as many files before the
  * first merge, less is rewritten in all (docs/decisions/0022-files-are-merged-less-often.md). RocksDB holds writes
  * back where still more files wait to be merged.
  */
private[run] object Compaction {
  private final val Options = "level0_file_num_compaction_trigger=16;level0_slowdown_writes_trigger=32;" +
    "level0_stop_writes_trigger=48;max_bytes_for_level_multiplier=3"
  private val known = util.Collections.newSetFromMap(new util.WeakHashMap[InnerRocksDB, java.lang.Boolean])

  /** Spark has no settings for it, and opens a database anew where it loads another version than the last one. */
  def set(db: RocksDB): Unit = synchronized {
    val inner = StoreInternals.innerOf(db)
    if (known.add(inner)) inner.setOptions(MutableColumnFamilyOptions.parse(Options).build())
  }
}
