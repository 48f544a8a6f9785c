package org.apache.spark.sql.rejoin.simulation

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.rejoin.sink.SinkSpec

/** Runs histories of one job; `sink` is a [[SinkSpec]]'s JSON. The steps are those of tests/simulation/history.py. */
final class Simulation(plan: String, sink: String, parallelism: Int) {
  private val query = new SimulatedQuery(plan, parallelism)
  private val spec = SinkSpec.read(sink)

  /** The tables of the scans, which histories number from 0. */
  def tables(): String = compact(render(JArray(query.scans.toList.map(scan => JString(scan.spec.table)))))

  /** Runs `{"faults", "local", "steps"}`; gives per step what became visible. */
  def run(history: String): String = compact(render(JArray(new History(query, spec, parse(history)).run())))
}

private final class History(query: SimulatedQuery, sink: SinkSpec, history: JValue) {
  private implicit val formats: Formats = DefaultFormats
  private val faults = (history \ "faults").extract[Set[String]]
  private val isLocal = (history \ "local").extract[Boolean]
  private val kafka = new SimulatedKafka(sink.partitions.get, fences = !faults("unfenced"))
  private val world = new World(query, sink, kafka, faults)
  private val drivers = new ArrayBuffer[SimulatedDriver]
  private var shown = 0
  private var shownErrors = 0
  private var shownEpochs = 0

  def run(): List[JValue] = (history \ "steps").children.map { step =>
    val JArray(JString(name) :: arguments) = step: @unchecked
    perform(name, arguments)
    report()
  }

  private def perform(name: String, arguments: List[JValue]): Unit = (name, arguments) match {
    case ("topic", List(JString(table), JInt(partitions))) =>
      for (scan <- query.scans if scan.spec.table == table) {
        val logs = world.topics(scan.number)
        while (logs.size < partitions.toInt) logs += new ArrayBuffer[FedRecord]
      }
    case ("feed", List(JString(table), JInt(partition), key, value)) =>
      for (scan <- query.scans if scan.spec.table == table)
        world.topics(scan.number)(partition.toInt) += FedRecord(bytes(key), bytes(value), kafka.nowMs)
    case ("wait", List(JInt(ms))) =>
      kafka.passTime(ms.toLong)
      drivers.foreach(_.beat())
    case ("discover", Nil) => drivers.lastOption.foreach(_.discover())
    case ("start", List(JBool(replaces), kind, JInt(at))) => start(replaces, kind, at.toInt)
    case ("kill", List(JBool(withExecutors))) => drivers.lastOption.foreach(_.kill(withExecutors))
    case ("epoch", List(back, step)) =>
      val JInt(ago) = back: @unchecked
      drivers.lift(drivers.size - 1 - ago.toInt).foreach(_.epoch(EpochStep.read(step)))
    case ("wake", List(JInt(steps))) => wake(steps.toInt)
    case _ => throw new IllegalArgumentException(s"no step: $name $arguments")
  }

  /** Starts the query anew in its driver, or a new driver where there is none or it is replaced. */
  private def start(replaces: Boolean, kind: JValue, at: Int): Unit = {
    val fault = Option(kind).collect { case JString(name) => CallFault(name, at) }
    if (replaces || drivers.lastOption.forall(_.isDead)) drivers += new SimulatedDriver(world, isLocal)
    drivers.lastOption.filter(_.next.isEmpty).foreach(_.start(fault))
  }

  /** Lets the tasks and the drivers go on that were thought dead. */
  private def wake(steps: Int): Unit = {
    for (task <- world.lingering.toSeq)
      try if (steps > 0) task.advance(steps) else task.finish()
      catch { case _: JvmDied | _: Exception => () }
    if (steps == 0) {
      world.lingering.clear()
      drivers.foreach(_.wake())
    }
  }

  private def bytes(text: JValue): Array[Byte] = text match {
    case JString(value) => value.getBytes(UTF_8)
    case _ => null
  }

  private def report(): JValue = {
    val records = kafka.poll().map(r => JArray(List(text(r.key), text(r.value))))
    val transactions = kafka.committed.drop(shown).map { t =>
      val entry = parse(t.offset.metadata)
      JArray(List(JString(t.id), JInt(t.offset.offset), entry \ "generation", JInt(t.records)))
    }
    shown = kafka.committed.size
    val errors = world.errors.drop(shownErrors).map { case (generation, message) =>
      JArray(List(JInt(generation), JString(message)))
    }
    shownErrors = world.errors.size
    val epochs = world.checkpoint.commits.keys.drop(shownEpochs).map(epoch)
    shownEpochs = world.checkpoint.commits.size
    JObject(
      "records" -> JArray(records.toList),
      "transactions" -> JArray(transactions.toList),
      "errors" -> JArray(errors.toList),
      "epochs" -> JArray(epochs.toList),
      "generation" -> JInt(world.checkpoint.generation),
      "runs" -> JBool(drivers.lastOption.exists(_.next.isDefined)))
  }

  private def epoch(number: Long): JValue = {
    val logged = world.checkpoint.offsets(number)
    JObject(
      "ends" -> JArray(logged.ends.toList.sortBy(_._1).map { case ((scan, partition), end) =>
        JArray(List(JInt(scan), JInt(partition), JInt(end)))
      }),
      "counts" -> JArray(query.scans.toList.map { scan =>
        JInt(BigInt(logged.counts.getOrElse(scan.spec.topics.values.head, 0)))
      }),
      "at" -> JInt(logged.plannedAtMs))
  }

  private def text(of: String): JValue = if (of == null) JNull else JString(of)
}
