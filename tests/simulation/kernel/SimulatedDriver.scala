package org.apache.spark.sql.rejoin.simulation

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.util.Random

import org.json4s.{JInt, JString, JValue}

import org.apache.spark.sql.rejoin.run.{Clock, ClockOffset, Counters}
import org.apache.spark.sql.rejoin.sink.{EpochWriter, SinkRecord, SinkSpec, Takeover}
import rejoin.core.results.Overflow

/** An epoch in Spark's offset log. `ends` are by scan and partition. */
final case class LoggedEpoch(
    ends: Map[(Int, Int), Long],
    clocks: Vector[ClockOffset],
    plannedAtMs: Long,
    counts: Map[Int, Int])

/** A query's checkpoint: Spark's two logs, the state of each committed epoch, the generation of the last driver. */
final class Checkpoint(empty: StateVersion) {
  val offsets = new mutable.TreeMap[Long, LoggedEpoch]
  val commits = new mutable.TreeMap[Long, StateVersion]
  var generation = 0L
  var writers = 0L

  def stateBefore(epoch: Long): StateVersion = if (epoch == 0) empty else commits(epoch - 1)
}

/** What the drivers of a history share. */
final class World(val query: SimulatedQuery, val sink: SinkSpec, val kafka: SimulatedKafka, val faults: Set[String]) {
  val checkpoint = new Checkpoint(query.emptyState)
  val topics: Map[Int, ArrayBuffer[ArrayBuffer[FedRecord]]] =
    query.scans.map(_.number -> new ArrayBuffer[ArrayBuffer[FedRecord]]).toMap
  val errors = new ArrayBuffer[(Long, String)]
  val counters = new Counters

  /** Tasks that Spark no longer waits for. */
  val lingering = new ArrayBuffer[SimulatedTask]
}

/** A fault of one task: at a call to Kafka as in [[CallFault]], `linger` before a record, or run `twice`. */
final case class TaskFault(writer: Int, kind: String, at: Int)

/** How an epoch is run.
  *
  * @param caps
  *   how many records of each partition it takes at most, in turn
  * @param places
  *   executor of each writer's task, in turn
  * @param order
  *   seed of the order in which blocks arrive
  * @param stop
  *   where the driver stops: `planned`, `written` (before Spark's own commit), or nowhere
  */
final case class EpochStep(caps: Seq[Int], places: Seq[Int], order: Int, faults: Seq[TaskFault], stop: Option[String])

object EpochStep {

  /** Field by field: reflection would take longer than the epoch. */
  def read(step: JValue): EpochStep = {
    def ints(of: JValue): Seq[Int] = of.children.map(int)
    val faults = (step \ "faults").children.map { fault =>
      val JString(kind) = fault \ "kind": @unchecked
      TaskFault(int(fault \ "writer"), kind, int(fault \ "at"))
    }
    val stop = Option(step \ "stop").collect { case JString(place) => place }
    EpochStep(ints(step \ "caps"), ints(step \ "places"), int(step \ "order"), faults, stop)
  }

  private def int(of: JValue): Int = {
    val JInt(value) = of: @unchecked
    value.toInt
  }
}

/** A task that has failed as often as Spark lets it, or a log that another driver has written. */
final class QueryFailed(message: String) extends Exception(message)

/** One process: owns the checkpoint from its start until it dies or the next generation starts. */
final class SimulatedDriver(world: World, isLocal: Boolean) {
  private val checkpoint = world.checkpoint
  checkpoint.generation += 1
  val generation: Long = checkpoint.generation
  private val jvm = new SimulatedJvm(world.kafka, isOnly = isLocal)
  private val executors = Array.fill(2)(if (isLocal) jvm else newExecutor())
  private val spec =
    world.sink.copy(generation = generation, ledgers = world.query.writers.toLong)
  private var counts = Map.empty[Int, Int]
  private var hasTakenOver = false
  private var isFirst = true
  private var unfinished: Option[(Long, StateVersion)] = None

  /** The query runs, with the next epoch in mind. */
  var next: Option[Long] = None

  def isDead: Boolean = jvm.isDead
  def kill(withExecutors: Boolean): Unit = {
    jvm.isDead = true
    next = None
    if (withExecutors) executors.foreach(_.isDead = true)
  }

  def beat(): Unit = (jvm +: executors.toSeq).distinct.filterNot(_.isDead).foreach { jvm =>
    try jvm.producers.beat()
    catch { case _: JvmDied => () }
  }

  /** Starts the query: the first time it takes the ledgers over. */
  def start(fault: Option[CallFault]): Unit = guarded {
    if (checkpoint.generation != generation) throw new QueryFailed("CHECKPOINT_TAKEN_OVER: driver.json")
    val last = checkpoint.offsets.lastOption.map(_._1)
    val repeated = last.exists(!checkpoint.commits.contains(_))
    val epoch = last.fold(0L)(at => if (repeated) at else at + 1)
    jvm.fault = fault
    if (!hasTakenOver) {
      val by = Takeover(spec.checkpoint, generation, epoch, epoch, repeated, checkpoint.writers, None, spec.dense, spec.folder)
      jvm.producers.takeOver(spec, world.query.writers, by)
      checkpoint.writers = world.query.writers.toLong
      hasTakenOver = true
    }
    discover()
    isFirst = true
    next = Some(epoch)
  }

  /** Notices the present partition counts. */
  def discover(): Unit = counts = world.topics.map { case (scan, partitions) =>
    world.query.scans(scan).spec.topics.values.head -> partitions.size
  }

  /** Runs the next epoch, if there is something to do. */
  def epoch(step: EpochStep): Unit = for (number <- next) guarded {
    val known = checkpoint.offsets.get(number).filter(_ => isFirst)
    for (logged <- known.orElse(planned(number, step))) {
      if (known.isEmpty && checkpoint.offsets.contains(number))
        throw new QueryFailed(s"another driver has planned epoch $number")
      checkpoint.offsets(number) = logged
      if (step.stop.contains("planned")) kill(withExecutors = false)
      else {
        val state = write(number, inputOf(number), step)
        if (step.stop.contains("written")) {
          unfinished = Some(number -> state)
          kill(withExecutors = false)
        } else commit(number, state)
      }
    }
  }

  /** A driver that was thought dead notes the epoch that it had written. */
  def wake(): Unit = unfinished.foreach { case (number, state) =>
    unfinished = None
    if (!checkpoint.commits.contains(number)) checkpoint.commits(number) = state
  }

  private def commit(number: Long, state: StateVersion): Unit = {
    if (checkpoint.commits.contains(number)) throw new QueryFailed(s"another driver has committed epoch $number")
    checkpoint.commits(number) = state
    isFirst = false
    next = Some(number + 1)
  }

  private def planned(number: Long, step: EpochStep): Option[LoggedEpoch] = {
    val before = checkpoint.offsets.get(number - 1)
    val caps = Iterator.continually(step.caps).flatten
    val ends = for (scan <- world.query.scans.toSeq; (log, p) <- world.topics(scan.number).zipWithIndex) yield {
      val from = before.flatMap(_.ends.get((scan.number, p))).getOrElse(0L)
      (scan.number, p) -> math.min(log.size.toLong, from + caps.next())
    }
    val nowMs = if (world.faults("live-idle")) SimulatedDriver.StartMs else SimulatedDriver.StartMs + world.kafka.nowMs
    val clocks = world.query.operators.zipWithIndex.map { case (operator, i) =>
      val from = before.fold(SimulatedDriver.NoClock)(_.clocks(i))
      operator.timing.tickMs.fold(from)(Clock.next(from, ClockOffset(nowMs, counts, ended = false), _))
    }.toVector
    val logged = LoggedEpoch(ends.toMap, clocks, world.kafka.nowMs, counts)
    val moved = before.fold(true)(b => ends.exists { case (at, end) => b.ends.getOrElse(at, 0L) != end } ||
      b.clocks != clocks)
    Option.when(moved)(logged)
  }

  private def inputOf(number: Long): EpochInput = {
    val logged = checkpoint.offsets(number)
    val before = checkpoint.offsets.get(number - 1)
    val records = for {
      ((scan, partition), end) <- logged.ends
      from = before.flatMap(_.ends.get((scan, partition))).getOrElse(0L) if from < end
    } yield (scan, partition) -> (from -> world.topics(scan)(partition).slice(from.toInt, end.toInt).toSeq)
    val clocks = logged.clocks.indices.map { i =>
      before.fold(SimulatedDriver.NoClock)(_.clocks(i)) -> logged.clocks(i)
    }
    EpochInput(records, clocks.toVector)
  }

  /** Runs the tasks of all writers; gives the state that the successful ones left. */
  private def write(number: Long, input: EpochInput, step: EpochStep): StateVersion = {
    val runs = new mutable.HashMap[Int, EpochOutput]
    def run(attempt: Int): EpochOutput = runs.getOrElseUpdate(
      attempt, {
        val order = new Random(step.order * 31L + attempt + generation * 1009)
        val loses = isFirst && generation > 1 && world.faults("lost-mark")
        world.query.run(input, checkpoint.stateBefore(number), order, loses)
      })
    var state = run(0).state
    for (writer <- 0 until world.query.writers) {
      val attempt = writeOne(number, writer, step, attempt => run(attempt).records(writer))
      if (attempt > 0) state = mixed(state, run(attempt).state, writer)
    }
    state
  }

  /** The state of the task that fed the writer, of another attempt than that of the other tasks. */
  private def mixed(state: StateVersion, other: StateVersion, writer: Int): StateVersion =
    world.query.isFedBy(writer).fold(state) { operator =>
      val partition = writer % world.query.parallelism
      val own = other.groups(operator.number).filter(_._1 % world.query.parallelism == partition)
      StateVersion(state.groups.updated(operator.number, state.groups(operator.number) ++ own))
    }

  /** Gives the attempt that succeeded. */
  private def writeOne(number: Long, writer: Int, step: EpochStep, records: Int => Seq[SinkRecord]): Int = {
    val fault = step.faults.find(_.writer == writer)
    val place = step.places(writer % step.places.size)
    var attempt = 0
    var failure: Option[Throwable] = fault.filter(_.kind == "linger").map { lingers =>
      val task = taskAt(place, number, writer, records(0), isRetry = false)
      world.lingering += task
      attempt = 1
      try task.advance(lingers.at)
      catch { case e @ (_: JvmDied | _: Exception) => note(e) }
      new QueryFailed("the executor does not answer")
    }
    if (failure.isEmpty) failure = tried(place, number, writer, records(0), fault, isRetry = false)
    while (failure.isDefined) {
      attempt += 1
      if (jvm.isDead) throw new JvmDied
      if (attempt > SimulatedDriver.MostFailures) throw new QueryFailed(failure.get.toString)
      failure = tried(place + attempt, number, writer, records(attempt), None, isRetry = true)
    }
    if (fault.exists(_.kind == "twice"))
      tried(place + attempt + 1, number, writer, records(attempt + 1), None, isRetry = true)
    attempt
  }

  private def tried(
      place: Int,
      number: Long,
      writer: Int,
      records: Seq[SinkRecord],
      fault: Option[TaskFault],
      isRetry: Boolean): Option[Throwable] = {
    val task = taskAt(place, number, writer, records, isRetry)
    task.jvm.fault = fault.collect { case TaskFault(_, kind, at) if kind.contains("-") => CallFault(kind, at) }
    try {
      task.finish()
      None
    } catch {
      case e @ (_: JvmDied | _: Exception) =>
        note(e)
        Some(e)
    } finally task.jvm.fault = None
  }

  private def newExecutor(): SimulatedJvm = new SimulatedJvm(world.kafka, isOnly = false)

  private def taskAt(
      place: Int,
      number: Long,
      writer: Int,
      records: Seq[SinkRecord],
      isRetry: Boolean): SimulatedTask = {
    val slot = Math.floorMod(place, executors.length)
    if (executors(slot).isDead && !isLocal) executors(slot) = newExecutor()
    val task = new EpochWriter(spec, world.counters, executors(slot).producers, isRetry, Overflow.inMemory)
    new SimulatedTask(executors(slot), task, number, writer, records)
  }

  private def note(e: Throwable): Unit = if (!e.isInstanceOf[JvmDied]) world.errors += generation -> e.toString

  private def guarded(body: => Unit): Unit =
    try body
    catch {
      case _: JvmDied => next = None
      case e: Exception =>
        next = None
        note(e)
    } finally jvm.fault = None
}

object SimulatedDriver {
  final val StartMs = 1600000000000L

  /** How often Spark tries a task again. */
  final val MostFailures = 4
  val NoClock: ClockOffset = ClockOffset(Long.MinValue, Map.empty, ended = false)
}

/** The writing of one epoch by one writer in one JVM; it can stop between its calls and go on later. */
final class SimulatedTask(
    val jvm: SimulatedJvm,
    task: EpochWriter,
    epoch: Long,
    writer: Int,
    records: Seq[SinkRecord]) {
  private var at = -1
  private var admitted = false
  private var hasEnded = false

  /** Opens the writer, then sends records until `steps` are done. */
  def advance(steps: Int): Unit = steered {
    var left = steps
    while (left > 0 && at < records.size) {
      if (at < 0) admitted = task.open(writer.toLong, epoch)
      else if (admitted) task.process(records(at))
      at += 1
      left -= 1
    }
  }

  def finish(): Unit = if (!hasEnded) {
    advance(Int.MaxValue)
    steered {
      hasEnded = true
      task.close(null)
    }
  }

  private def steered(body: => Unit): Unit =
    try body
    catch {
      case died: JvmDied =>
        hasEnded = true
        throw died
      case e: Exception =>
        hasEnded = true
        task.close(e)
        throw e
    }
}
