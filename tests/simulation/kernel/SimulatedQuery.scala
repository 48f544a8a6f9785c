package org.apache.spark.sql.rejoin.simulation

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.util.Random

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JValue}

import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.format.SourceRecord
import org.apache.spark.sql.rejoin.ingest.{EnvelopeRow, IngestRunner, IngestSpec}
import org.apache.spark.sql.rejoin.run.{Clock, ClockOffset, Counters, Operator, RekeySpec, Rekeyer}
import org.apache.spark.sql.rejoin.sink.{EmitSpec, Emitter, SinkRecord}
import rejoin.core.machine.Machine
import rejoin.core.results.Overflow
import rejoin.core.row.{Changelog, Envelope, GroupBatch, Output, RowKind}
import rejoin.core.state.{BatchCells, MemoryState}

/** A record of a source topic. */
final case class FedRecord(key: Array[Byte], value: Array[Byte], timestampMs: Long)

/** What an epoch reads: by scan and partition the first offset and the records, by operator how its clock moves. */
final case class EpochInput(
    records: Map[(Int, Int), (Long, Seq[FedRecord])],
    clocks: Vector[(ClockOffset, ClockOffset)])

/** The state of each operator, by key group; never changed once it is part of a version. */
final case class StateVersion(groups: Vector[Map[Int, MemoryState]])

/** A plan as Spark runs it: operators in partitions, whose blocks of rows arrive in any order.
  *
  * Ingest, clock marks, machines, rekeying and encoding are the product's. One instance serves all histories.
  */
final class SimulatedQuery(planJson: String, val parallelism: Int) {
  private implicit val formats: Formats = DefaultFormats
  private val root = parse(planJson)
  private val counters = new Counters
  val scans = new ArrayBuffer[SimulatedScan]
  val operators = new ArrayBuffer[SimulatedOperator]
  private val branches = (root \ "inputs").children.map { project =>
    operator(project \ "input") -> new Emitter(EmitSpec.read(root, project))
  }

  /** Whether the records of all branches meet once more, by their key, before they are written. */
  val exchanges: Boolean = (root \ "exchange").extract[Boolean]

  def writers: Int = if (exchanges) parallelism else branches.size * parallelism

  /** The operator whose tasks are the writers'; none where an exchange comes between. */
  def isFedBy(writer: Int): Option[SimulatedOperator] = Option.when(!exchanges)(branches(writer / parallelism)._1)

  val emptyState: StateVersion = StateVersion(operators.map(_ => Map.empty[Int, MemoryState]).toVector)

  /** Runs an epoch once: the records of each writer, and the state after it.
    *
    * @param order
    *   decides in which order the blocks of a shuffle arrive
    * @param losesWatermarks
    *   whether the watermarks that the sources report do not arrive
    */
  def run(input: EpochInput, state: StateVersion, order: Random, losesWatermarks: Boolean): EpochOutput = {
    val epoch = new RunningEpoch(input, state, order, losesWatermarks, scans.map(_.spec.groups).max)
    val records = branches.flatMap { case (operator, emitter) =>
      epoch.changes(operator).map(_.map(record(_, emitter)))
    }
    val written = if (exchanges) exchanged(order.shuffle(records).flatten) else records
    EpochOutput(written.toVector, StateVersion(operators.map(epoch.stateOf).toVector))
  }

  private def exchanged(records: Seq[SinkRecord]): Seq[Seq[SinkRecord]] = {
    val byWriter = records.groupBy(r => Math.floorMod(java.util.Arrays.hashCode(r.key), parallelism))
    (0 until parallelism).map(byWriter.getOrElse(_, Nil))
  }

  private def record(change: Changelog, emitter: Emitter): SinkRecord = {
    require(RowKind.isChange(change.kind), s"a change of kind ${change.kind} reached the sink")
    val row = emitter.record(change, Nil)
    def bytes(i: Int) = if (row.isNullAt(i)) null else row.getBinary(i).clone()
    val topic = row.getUTF8String(0).toString
    SinkRecord(topic, bytes(1), bytes(2), row.getInt(3), None, null, isDeadLetter = false, row.getBoolean(7))
  }

  private def operator(node: JValue): SimulatedOperator = {
    val inputs = (node \ "inputs").children.map { input =>
      if ((input \ "kind").extract[String] == "kafka-scan") Left(scan(input))
      else Right((operator(input \ "input"), RekeySpec.read(compact(render(input)))))
    }
    val found = new SimulatedOperator(operators.size, Operator.read(compact(render(node))), inputs, parallelism)
    operators += found
    found
  }

  private def scan(node: JValue): SimulatedScan = {
    val spec = IngestSpec.read(node, chunked = true)
    val found = new SimulatedScan(scans.size, spec, new IngestRunner(spec, counters, "q"))
    scans += found
    found
  }
}

/** @param records
  *   by writer
  */
final case class EpochOutput(records: Vector[Seq[SinkRecord]], state: StateVersion)

final class SimulatedScan(val number: Int, val spec: IngestSpec, runner: IngestRunner) {
  private val topic = UTF8String.fromString(spec.topics.keys.head)

  /** The block of the task that reads one partition. */
  def block(partition: Int, from: Long, records: Seq[FedRecord]): Seq[Envelope] = {
    runner.start()
    val record = new SourceRecord
    record.topic = topic
    record.partition = partition
    val rows = records.iterator.zipWithIndex.flatMap { case (given, i) =>
      record.offset = from + i
      record.timestampMs = given.timestampMs
      record.key = given.key
      record.value = given.value
      runner.add(record)
    } ++ runner.finish()
    rows.map(EnvelopeRow.read).toVector
  }
}

final class SimulatedOperator(
    val number: Int,
    operator: Operator,
    val inputs: Seq[Either[SimulatedScan, (SimulatedOperator, RekeySpec)]],
    val parallelism: Int) {
  val timing = operator.spec.timing
  val machines = Vector.fill(parallelism)(operator.machine(Overflow.inMemory))
}

/** One run of an epoch: each operator is run once, by partition. */
private final class RunningEpoch(
    input: EpochInput,
    before: StateVersion,
    order: Random,
    losesWatermarks: Boolean,
    groups: Int) {
  private val after = new mutable.HashMap[Int, Map[Int, MemoryState]]

  def stateOf(operator: SimulatedOperator): Map[Int, MemoryState] = after(operator.number)

  /** What the operator's tasks emit, by partition. */
  def changes(operator: SimulatedOperator): Seq[Seq[Changelog]] = {
    val clock = clockMarks(operator)
    val blocks = order.shuffle(clock +: operator.inputs.flatMap {
      case Left(scan) => scanned(scan)
      case Right((from, spec)) => changes(from).map { task =>
          val rekeyer = new Rekeyer(spec)
          task.flatMap(rekeyer(_))
        }
    })
    val byGroup = blocks.flatten.groupBy(_.group)
    var states = before.groups(operator.number)
    val emitted = (0 until operator.parallelism).map { partition =>
      val results = new ArrayBuffer[Changelog]
      val out: Output = (kind, hash, left, right) => results += Changelog(kind, hash, left, right)
      for (group <- byGroup.keys.toSeq.sorted if group % operator.parallelism == partition) {
        val batch = new GroupBatch(Option.when(group % 2 == 1)(_ => ()))
        byGroup(group).foreach(batch.add)
        val state = states.get(group).fold(new MemoryState)(_.snapshot())
        val cells = new BatchCells(state)
        Machine.run(operator.machines(partition), operator.timing, group, batch, cells, out)
        cells.store()
        states = states.updated(group, state)
      }
      results.toSeq
    }
    after(operator.number) = states
    emitted
  }

  private def scanned(scan: SimulatedScan): Seq[Seq[Envelope]] =
    for (((number, partition), (from, records)) <- input.records.toSeq if number == scan.number)
      yield scan.block(partition, from, records).filterNot(losesWatermarks && _.kind == RowKind.Watermark)

  private def clockMarks(operator: SimulatedOperator): Seq[Envelope] =
    if (!operator.timing.usesClock) Nil
    else {
      val (from, to) = input.clocks(operator.number)
      if (from == to) Nil else Clock.marks(from, to, groups, Map.empty).toSeq
    }
}
