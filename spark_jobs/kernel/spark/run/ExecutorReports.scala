package org.apache.spark.sql.rejoin.run

import java.util
import java.util.concurrent.{ConcurrentHashMap, Executors, ScheduledExecutorService, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.util.Utils

import org.apache.spark.sql.rejoin.format.avro.RegistryWaits

/** What an executor's JVM has done so far, and what it waits for; [[JvmCounts]] and [[RegistryWaits]]. */
final case class ExecutorReport(executor: String, counts: Map[(String, String), Long], waits: Map[String, Long])

/** Tells the driver once a second what each executor's JVM counts and waits for, and lets it log at the driver's level.
  * Spark leaves executors at INFO. Where tasks run in the driver's JVM, there is nothing to tell.
  *
  * What an executor that dies has counted since its last report is lost, and so is what it waited for.
  */
final class ExecutorReports extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPlugin {
    override def init(context: SparkContext, plugin: PluginContext): util.Map[String, String] = {
      ExecutorReports.newest.clear()
      util.Collections.emptyMap()
    }

    override def receive(message: Any): AnyRef = {
      message match {
        case report: ExecutorReport => ExecutorReports.newest.put(report.executor, report)
        case other => throw new IllegalArgumentException(s"no report of an executor: $other")
      }
      null
    }
  }

  override def executorPlugin(): ExecutorPlugin = new ExecutorPlugin {
    private var timer: ScheduledExecutorService = _

    override def init(plugin: PluginContext, conf: util.Map[String, String]): Unit =
      if (plugin.executorID != ExecutorReports.Driver) {
        plugin.conf.getOption("spark.log.level").foreach(Utils.setLogLevelIfNeeded)
        timer = Executors.newSingleThreadScheduledExecutor { report =>
          val thread = new Thread(report, "rejoin-executor-reports")
          thread.setDaemon(true)
          thread
        }
        timer.scheduleWithFixedDelay(() => send(plugin), 0, ExecutorReports.EveryMs, TimeUnit.MILLISECONDS)
      }

    override def shutdown(): Unit = if (timer != null) timer.shutdownNow()

    private def send(plugin: PluginContext): Unit =
      try plugin.send(ExecutorReport(plugin.executorID, JvmCounts.own, RegistryWaits.own))
      catch { case NonFatal(_) => } // the driver is gone, and this JVM follows soon
  }
}

object ExecutorReports {
  private final val Driver = "driver"
  private final val EveryMs = 1000L
  private val newest = new ConcurrentHashMap[String, ExecutorReport]

  def all: Seq[ExecutorReport] = newest.values.asScala.toSeq
}
