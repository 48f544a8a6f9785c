package org.apache.spark.sql.rejoin.run

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, TaskLocation}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, StateStoreProviderId}
import org.apache.spark.storage.BlockManagerId

/** Spreads the state of a query evenly over the executors.
  *
  * Spark runs a task on the executor that had its state in the last epoch, and rather waits than to run it elsewhere
  * (`spark.locality.wait`). An executor that comes after the first epoch, or in place of one that was lost, would
  * have nothing to do as long as the epochs are short.
  */
private[rejoin] object StatePlaces {

  /** Those that the application has; the driver is none. */
  def executors(spark: SparkSession): Seq[BlockManagerId] =
    spark.sparkContext.env.blockManager.master.getMemoryStatus.keys.filterNot(_.isDriver).toSeq

  /** Tells Spark to run some tasks elsewhere from the next epoch on; returns how many. */
  def spread(spark: SparkSession, query: String): Int = {
    val there = executors(spark)
    val found = spark.streams.active.find(_.name == query).map(_.asInstanceOf[StreamingQueryWrapper].streamingQuery)
    val progress = found.flatMap(q => Option(q.lastProgress))
    val moved =
      for (run <- found.toSeq; epoch <- progress.toSeq; (operator, number) <- epoch.stateOperators.zipWithIndex) yield {
        val folder = new Path(run.resolvedCheckpointRoot, "state").toString
        val stores = (0 until operator.numShufflePartitions.toInt).map { partition =>
          StateStoreProviderId(StateStoreId(folder, number.toLong, partition), run.runId)
        }
        spread(spark, stores, there)
      }
    moved.sum
  }

  private def spread(spark: SparkSession, stores: Seq[StateStoreProviderId], executors: Seq[BlockManagerId]): Int = {
    val coordinator = spark.streams.stateStoreCoordinator
    val places = stores.map(store => coordinator.getLocation(store).map(TaskLocation(_)))
    val at = places.map {
      case Some(place: ExecutorCacheTaskLocation) => place.executorId
      case _ => ""
    }
    val to = moves(at, executors.map(_.executorId))
    for ((store, id) <- to; executor <- executors.find(_.executorId == id))
      coordinator.reportActiveInstance(stores(store), executor.host, executor.executorId, Nil)
    to.size
  }

  /** The fewest moves after which no executor has two tasks more than another: task and new executor.
    *
    * @param at
    *   the executor of each task; a task whose executor is unknown or gone runs anywhere
    */
  def moves(at: Seq[String], executors: Seq[String]): Seq[(Int, String)] = {
    val of = executors.sorted.map(id => id -> mutable.ArrayBuffer.from(at.indices.filter(at(_) == id)))
    val found = mutable.ArrayBuffer.empty[(Int, String)]
    if (of.nonEmpty) {
      def fullest = of.maxBy(_._2.size)
      def emptiest = of.minBy(_._2.size)
      while (fullest._2.size - emptiest._2.size > 1) {
        val (task, to) = (fullest._2.remove(fullest._2.size - 1), emptiest)
        to._2 += task
        found += task -> to._1
      }
    }
    found.toSeq
  }
}
