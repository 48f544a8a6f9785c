package org.apache.spark.sql.rejoin.run

import java.lang.reflect.AccessibleObject
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate
import transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.{RocksDB, RocksDBStateStoreProvider, StateStoreChangelogWriter}
import org.rocksdb.{InfoLogLevel, Logger, Options, RocksDB => InnerRocksDB, WriteOptions}

/** What Spark 4.3 keeps to itself of a state store, by its names. */
private[run] object StoreInternals {
  type Store = RocksDBStateStoreProvider#RocksDBStateStore

  /** The store of a task. */
  def storeOf(handle: StatefulProcessorHandleImpl): Store =
    opened(classOf[StatefulProcessorHandleImpl].getDeclaredField("store")).get(handle) match {
      case store: RocksDBStateStoreProvider#RocksDBStateStore => store
      case other => throw new IllegalStateException(s"state is kept in RocksDB, not in ${other.getClass.getName}")
    }

  /** Whether Spark's coordinator wants a snapshot from the commit, because those of this store lag behind. */
  def isAskedForSnapshot(store: Store): Boolean = {
    val name = s"${classOf[RocksDBStateStoreProvider].getName.replace('.', '$')}$$$$forceSnapshotOnCommit"
    opened(store.getClass.getMethod(name)).invoke(store).asInstanceOf[Boolean]
  }

  def loadedVersion(db: RocksDB): Long = call(db, "loadedVersion").asInstanceOf[Long]
  def lastSnapshotVersion(db: RocksDB): Long = call(db, "lastSnapshotVersion").asInstanceOf[Long]

  /** The database itself, without Spark's accounts. */
  def innerOf(db: RocksDB): InnerRocksDB = call(db, "db").asInstanceOf[InnerRocksDB]
  def writeOptions(db: RocksDB): WriteOptions = call(db, "writeOptions").asInstanceOf[WriteOptions]
  def optionsOf(db: RocksDB): Options = call(db, "rocksDbOptions").asInstanceOf[Options]

  /** What writes the changelog file of the version that is being made. */
  def changelogOf(db: RocksDB): Option[StateStoreChangelogWriter] =
    call(db, "changelogWriter").asInstanceOf[Option[StateStoreChangelogWriter]]

  /** The id of the version that was loaded, and that of the load itself; none in checkpoints of format 1. */
  def idsOfLoad(db: RocksDB): (Option[String], Option[String]) =
    (idOf(db, "loadedStateStoreCkptId"), idOf(db, "sessionStateStoreCkptId"))

  /** Whether the commit of what is loaded makes a snapshot, whatever is still written. */
  def endsWithSnapshot(db: RocksDB): Boolean =
    flag(db, "shouldForceSnapshot").get || call(db, "shouldCreateSnapshot").asInstanceOf[Boolean]

  /** The commit of what is loaded makes a snapshot and takes it to the checkpoint, as where Spark itself needs one. */
  def forceSnapshot(db: RocksDB): Unit = flag(db, "shouldForceSnapshot").set(true)

  /** RocksDB's threads say nothing from now on: to log they enter the JVM, and a JVM that ends, which waits for them,
    * lets nobody in. What fails in them fails the next write as well.
    */
  def silence(db: RocksDB): Unit =
    call(db, "dbLogger").asInstanceOf[Logger].setInfoLogLevel(InfoLogLevel.NUM_INFO_LOG_LEVELS)

  private def idOf(db: RocksDB, name: String): Option[String] = call(db, name).asInstanceOf[Option[String]]

  private def flag(db: RocksDB, name: String): AtomicBoolean = call(db, name).asInstanceOf[AtomicBoolean]

  private def call(db: RocksDB, name: String): Any = opened(classOf[RocksDB].getDeclaredMethod(name)).invoke(db)

  private def opened[T <: AccessibleObject](member: T): T = {
    member.setAccessible(true)
    member
  }
}
