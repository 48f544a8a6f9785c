package org.apache.spark.sql.rejoin.sink

import java.util.concurrent.{Callable, ExecutionException, Executors, TimeUnit}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, SparkEnv}

/** The idle producers of one JVM, at most one of each id.
  *
  * @param isOnlyJvm
  *   whether no other JVM runs tasks of this driver, so that a ledger is where its last producer has left it
  * @param takenAtOnce
  *   how many ledgers are taken over at a time
  */
private[rejoin] final class SinkProducers(brokers: SinkBrokers, isOnlyJvm: Boolean, takenAtOnce: Int) {
  private val idle = new mutable.HashMap[String, SinkProducer]
  private val newest = new mutable.HashMap[String, Long] // by id, the last producer's serial number
  private var made = 0L

  /** Takes the writer's producer out of the pool, so that no lingering task can share it. */
  def take(spec: SinkSpec, writer: Long, epoch: Long): SinkProducer = {
    val kept = synchronized(idle.remove(spec.writerId(writer)))
    val (fit, unfit) = kept.partition(_.serves(spec, epoch, isOnlyJvm))
    unfit.foreach(_.close())
    fit.headOption.getOrElse(make(spec, writer))
  }

  /** A new producer, which fences whoever else writes, in place of one in the pool that may be fenced itself. */
  def replace(spec: SinkSpec, writer: Long): SinkProducer = {
    synchronized(idle.remove(spec.writerId(writer))).foreach(_.close())
    make(spec, writer)
  }

  /** Puts a producer into the pool, unless there is a newer one of its id, which has fenced it. */
  def giveBack(producer: SinkProducer): Unit = {
    val isNewest = synchronized {
      val found = newest.get(producer.id).contains(producer.serial)
      if (found) idle.put(producer.id, producer)
      found
    }
    if (!isNewest) producer.close()
  }

  /** A producer that fences all others of its id once it begins. */
  private def make(spec: SinkSpec, writer: Long): SinkProducer = {
    val serial = synchronized {
      made += 1
      newest.put(spec.writerId(writer), made)
      made
    }
    new SinkProducer(spec, writer, serial, brokers)
  }

  /** Makes all ledgers this driver's, before its first epoch, and fences the writers of earlier drivers.
    *
    * Those after one that fails are taken over as well. Returns for how many of them only the user's
    * `--epoch-written` said which epoch is written.
    */
  def takeOver(spec: SinkSpec, writers: Int, by: Takeover): Int = {
    val threads = Executors.newFixedThreadPool(writers.min(takenAtOnce))
    val each = (0L until writers.toLong).map[Callable[Boolean]](writer => () => takeOver(spec, writer, by))
    try threads.invokeAll(each.asJava).asScala.count(_.get)
    catch { case e: ExecutionException => throw e.getCause }
    finally threads.shutdownNow()
  }

  private def takeOver(spec: SinkSpec, writer: Long, by: Takeover): Boolean = {
    val producer = replace(spec, writer)
    val answered =
      try producer.takeOver(by)
      catch {
        case e: Throwable =>
          producer.discard()
          throw e
      }
    giveBack(producer)
    answered
  }

  /** Lets the ledgers of idle producers live on.
    *
    * A task that needs a producer during its heartbeat gets a new one, which fences the old one.
    */
  def beat(): Unit =
    for (id <- synchronized(idle.keys.toSeq); producer <- synchronized(idle.remove(id)))
      try {
        producer.beat()
        giveBack(producer)
      } catch {
        case NonFatal(_) => producer.discard() // fenced or unreachable: the next epoch will find out
      }
}

private[rejoin] object SinkProducers {
  private final val TakenAtOnce = 16 // each of them waits for Kafka most of the time

  private val BeatMs = 5000L

  /** Those of the running JVM; their heart begins to beat with the first use. */
  lazy val ofThisJvm: SinkProducers = {
    val spark = SparkEnv.get
    val isOnlyJvm = spark == null || spark.executorId == SparkContext.DRIVER_IDENTIFIER
    val producers = new SinkProducers(KafkaBrokers, isOnlyJvm, TakenAtOnce)
    val heart = Executors.newSingleThreadScheduledExecutor { beat =>
      val thread = new Thread(beat, "rejoin-ledger-heartbeat")
      thread.setDaemon(true)
      thread
    }
    heart.scheduleWithFixedDelay(() => producers.beat(), BeatMs, BeatMs, TimeUnit.MILLISECONDS)
    producers
  }
}
