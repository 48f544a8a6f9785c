package org.apache.spark.sql.rejoin.run

import java.lang.ProcessHandle
import java.util.concurrent.TimeUnit

/** Ends the JVM, without ceremony, where waiting for an orderly end would be wrong or for ever. */
object Lifeline {
  private val Killed = 137
  private val PollMs = 200L

  /** Dies with the driver process. A JVM that outlived it would go on writing to its checkpoint. */
  def follow(driver: Long): Unit =
    daemon("driver", () => {
      val alive = ProcessHandle.of(driver)
      while (alive.isPresent && alive.get.isAlive) TimeUnit.MILLISECONDS.sleep(PollMs)
      die()
    })

  /** Gives an orderly stop so long; native code of a query that was cut short may never return. */
  def haltAfter(seconds: Int): Unit =
    daemon("stop", () => {
      TimeUnit.SECONDS.sleep(seconds.toLong)
      die()
    })

  /** By a signal: `halt` runs what C++ does at an exit, which waits for RocksDB's threads and can crash beside them. */
  private def die(): Unit =
    try new ProcessBuilder("sh", "-c", s"kill -9 ${ProcessHandle.current.pid}").start().waitFor()
    finally Runtime.getRuntime.halt(Killed)

  private def daemon(name: String, body: Runnable): Unit = {
    val thread = new Thread(body, s"rejoin-lifeline-$name")
    thread.setDaemon(true)
    thread.start()
  }
}
