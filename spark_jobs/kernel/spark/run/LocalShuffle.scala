package org.apache.spark.sql.rejoin.run

import java.util
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.locks.LockSupport

import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.streaming.StreamingShuffleManager
import org.apache.spark.shuffle.{ShuffleHandle, ShuffleReadMetricsReporter, ShuffleReader, ShuffleWriteMetricsReporter,
  ShuffleWriter}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.{MutablePair, Utils}
import org.apache.spark.{ShuffleDependency, SparkConf, SparkEnv, TaskContext}

/** The shuffle of real-time mode where all tasks run in one JVM: rows go from task to task in memory.
  *
  * Spark's own sends them through connections that each epoch opens anew, and wakes each writer every few milliseconds
  * to see what it has to send. Where Spark has executors, this is Spark's own.
  */
final class LocalShuffle(conf: SparkConf) extends StreamingShuffleManager {
  private val isLocal = Utils.isLocalMaster(conf)
  private val shuffles = new ConcurrentHashMap[Int, TaskRows]

  override def registerShuffle[K, V, C](shuffleId: Int, dependency: ShuffleDependency[K, V, C]): ShuffleHandle = {
    if (isLocal) {
      shuffles.values.removeIf(_.isOver)
      val queues = Array.fill(dependency.partitioner.numPartitions)(new RowQueue(dependency.rdd.getNumPartitions))
      shuffles.put(shuffleId, new TaskRows(queues))
    }
    super.registerShuffle(shuffleId, dependency)
  }

  override def getWriter[K, V](
      handle: ShuffleHandle,
      mapId: Long,
      context: TaskContext,
      metrics: ShuffleWriteMetricsReporter): ShuffleWriter[K, V] =
    if (isLocal) new LocalWriter[K, V](rowsOf(handle, context), mapId, context)
    else super.getWriter(handle, mapId, context, metrics)

  override def getReader[K, C](
      handle: ShuffleHandle,
      startMapIndex: Int,
      endMapIndex: Int,
      startPartition: Int,
      endPartition: Int,
      context: TaskContext,
      metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] =
    if (isLocal) new LocalReader[K, C](rowsOf(handle, context).queues(startPartition), context)
    else super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics)

  private def rowsOf(handle: ShuffleHandle, task: TaskContext): TaskRows = {
    val rows = shuffles.get(handle.shuffleId)
    rows.enter(task)
    rows
  }
}

/** The rows of one shuffle, a queue for each partition.
  *
  * A writer stays until all readers have seen the end, and a reader until all writers have written. So all of them have
  * ended when none is there any more, unless one has failed: tasks that come after it wait for Spark to kill them.
  */
private final class TaskRows(val queues: Array[RowQueue]) {
  private val tasks = new AtomicInteger
  @volatile private var hasBegun = false

  def isOver: Boolean = hasBegun && tasks.get == 0

  def enter(task: TaskContext): Unit = {
    tasks.incrementAndGet()
    hasBegun = true
    task.addTaskCompletionListener[Unit](_ => tasks.decrementAndGet())
  }
}

/** The partition of a row is the key of its record; Spark goes on using the row. */
private final class LocalWriter[K, V](rows: TaskRows, mapId: Long, task: TaskContext) extends ShuffleWriter[K, V] {
  override def write(records: Iterator[Product2[K, V]]): Unit = {
    records.foreach { record =>
      val queue = rows.queues(record._1.asInstanceOf[Int])
      queue.add(record._2.asInstanceOf[UnsafeRow].copy(), task)
    }
    rows.queues.foreach(_.end())
    rows.queues.foreach(_.awaitReader(task))
  }

  /** Sizes are unknown; nobody plans by them. */
  override def getPartitionLengths(): Array[Long] = new Array[Long](rows.queues.length)

  override def stop(success: Boolean): Option[MapStatus] =
    Option.when(success)(MapStatus(SparkEnv.get.blockManager.shuffleServerId, getPartitionLengths(), mapId))
}

/** Rows after a silence are read at once; others wait until [[LocalReader.PaceNs]] have passed since the last time, so
  * that what becomes of them goes to the broker in fewer requests.
  */
private final class LocalReader[K, C](queue: RowQueue, task: TaskContext) extends ShuffleReader[K, C] {
  task.addTaskCompletionListener[Unit] { _ =>
    queue.leave()
    RowsTaken.forget()
  }

  override def read(): Iterator[Product2[K, C]] = new Iterator[Product2[K, C]] {
    private val pair = new MutablePair[K, C]
    private var rows = new util.ArrayDeque[UnsafeRow]
    private var takenAt = System.nanoTime()
    private var isEnded = false

    override def hasNext: Boolean = {
      if (rows.isEmpty && !isEnded) {
        RowsTaken.end()
        LockSupport.parkNanos(takenAt + LocalReader.PaceNs - System.nanoTime())
        rows = queue.take(rows, task)
        takenAt = System.nanoTime()
        isEnded = rows.isEmpty
        if (isEnded) queue.leave() else RowsTaken.begin()
      }
      !isEnded
    }

    override def next(): Product2[K, C] = {
      if (!hasNext) throw new NoSuchElementException("the shuffle's rows have ended")
      pair.update(null.asInstanceOf[K], rows.poll().asInstanceOf[C])
    }
  }
}

private object LocalReader {
  final val PaceNs = 2000000L
}
