package org.apache.spark.sql.rejoin.lookup

import java.sql.{SQLException, Statement}
import java.util.concurrent.{CancellationException, ExecutionException, Future}

/** A query for some keys that waits for its turn or runs; the task that asked may give it up. */
final class LookupQuery(val keys: IndexedSeq[Array[Byte]], onRetry: () => Unit) {
  private var answer: Future[IndexedSeq[Array[Byte]]] = _
  private var running: Statement = _
  @volatile private var isGivenUp = false

  private[lookup] def begin(answer: Future[IndexedSeq[Array[Byte]]]): this.type = {
    this.answer = answer
    this
  }

  /** Waits for the answers, in the order of the keys; throws what the query failed with. */
  def await(): IndexedSeq[Array[Byte]] =
    try answer.get()
    catch { case e: ExecutionException if e.getCause != null => throw e.getCause }

  private[lookup] def retried(): Unit =
    if (isGivenUp) throw new CancellationException else onRetry()

  /** Runs the statement, which [[cancel]] ends from outside. */
  private[lookup] def running[T](statement: Statement)(body: => T): T = {
    synchronized {
      if (isGivenUp) throw new CancellationException
      running = statement
    }
    try body
    finally synchronized { running = null }
  }

  /** Ends the query, if need be with its connection, so that neither it nor its place in the database stays busy. */
  def cancel(): Unit = {
    isGivenUp = true
    if (answer != null) answer.cancel(true)
    synchronized {
      if (running != null)
        try {
          val connection = running.getConnection
          try running.cancel()
          finally connection.abort(_.run())
        } catch { case _: SQLException => () }
    }
  }
}
