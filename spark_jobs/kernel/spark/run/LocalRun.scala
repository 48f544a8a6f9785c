package org.apache.spark.sql.rejoin.run

import java.nio.charset.StandardCharsets
import java.util.{Base64, HexFormat}

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.json4s.JsonDSL._
import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.columns.RowJson
import org.apache.spark.sql.rejoin.format.SourceRecord
import org.apache.spark.sql.rejoin.ingest.{DeadLetter, EnvelopeRow, IngestRunner, IngestSpec}
import org.apache.spark.sql.rejoin.sink.{EmitSpec, Emitter}
import rejoin.core.machine.Machine
import rejoin.core.results.Overflow
import rejoin.core.row.{Changelog, Envelope, GroupBatch, KeyGroup, Mark, Output, PartialRow, RowKind, Unhealed}
import rejoin.core.state.MemoryState
import rejoin.core.time.GroupState

/** A physical plan in memory: the same ingest, machines and encoders as in Spark, one micro-batch per step.
  *
  * For tests that need exact rows in milliseconds; state is [[MemoryState]] per operator and key group.
  * What is fed before the first step is the initial content of the tables.
  */
final class LocalRun(planJson: String, counters: Counters) {
  private val root = parse(planJson)
  private val query = OperatorNode.present(root \ "name").collect { case JString(name) => name }.getOrElse("query")
  private val plan = new LocalPlan(query, counters)
  private val outputs = (root \ "inputs").children.map { project =>
    plan.rows(project \ "input") -> new Emitter(EmitSpec.read(root, project))
  }
  private val partitions = new mutable.HashMap[Int, Int]
  private var clockMs = 0L
  private var clockMoved = true
  private var told = ClockOffset(Long.MinValue, Map.empty, ended = false)
  private var ended = false
  private var isFirst = true
  private var waitsForLoaded = false
  private var results: Seq[LocalResults] = Nil

  /** Queues records of a table: `[{"partition","offset","timestamp","key","value","headers"}]`, bytes in base64. */
  def feed(table: String, recordsJson: String): Unit = {
    val records = parse(recordsJson).children.map(new LocalRecord(_))
    plan.scans.filter(_.spec.table == table).foreach { scan =>
      scan.queue ++= records
      for (topic <- scan.spec.topics.values; record <- records)
        partitions(topic) = math.max(partitions.getOrElse(topic, 1), record.partition + 1)
    }
  }

  /** Moves processing time. */
  def advance(clockMs: Long): Unit = {
    this.clockMs = math.max(this.clockMs, clockMs)
    clockMoved = true
  }

  /** From now on only [[loaded]] says that the initial content of a table is complete. */
  def holdLoaded(): Unit = waitsForLoaded = true

  /** With the next step, the initial content of a table is complete. */
  def loaded(table: String): Unit = plan.scans.filter(_.spec.table == table).foreach(_.isLoaded = true)

  /** Runs one micro-batch over what was fed; gives `{"rows","records","rejects"}`.
    *
    * If a column has to be computed in Python, it gives `{"input","column","arguments"}` instead, the arguments of each
    * change or null; [[computed]] goes on from there.
    */
  def step(): String = {
    if (isFirst) start()
    val clock = tick()
    results = outputs.map { case (rows, emitter) => new LocalResults(rows.changes(clock), emitter) }
    proceed()
  }

  /** What Python has computed of the last arguments, as a JSON array; gives what [[step]] does. */
  def computed(values: String): String = {
    results.find(_.isWaiting).foreach(_.take(parse(values).children))
    proceed()
  }

  private def proceed(): String = results.indexWhere(_.isWaiting) match {
    case -1 =>
      val output = new LocalOutput
      results.foreach(_.write(output))
      results = Nil
      output.json
    case input => compact(render(JObject("input" -> JInt(input)) ~ results(input).question))
  }

  /** Runs the last micro-batch of a bounded run, in which the clock delivers the end mark. */
  def end(): String = {
    ended = true
    clockMoved = true
    step()
  }

  /** Goes on with new machines on the state as it is stored. */
  def restart(): Unit = plan.operators.foreach(_.restart())

  /** Stored rows per operator, `[left, right]`. */
  def counters(): String =
    compact(render(JArray(plan.operators.toList.map(op => JArray(op.rows.toList.map(JInt(_)))))))

  /** All cells in hexadecimal: per operator, sources first, and key group, values by names. */
  def cells(): String =
    compact(render(JArray(plan.operators.toList.map(_.cells))))

  /** Goes on from the cells that another run had, instead of the first step. */
  def restoreCells(cellsJson: String): Unit = {
    isFirst = false
    plan.operators.zip(parse(cellsJson).children).foreach { case (operator, cells) => operator.restoreCells(cells) }
  }

  private def start(): Unit = {
    isFirst = false
    for (scan <- plan.scans if scan.isGated) {
      val filled = if (waitsForLoaded) 0 until count(scan) else scan.queue.map(_.partition).distinct.toSeq
      scan.loading = filled
      scan.isLoaded ||= !waitsForLoaded
    }
  }

  private def count(scan: LocalScan): Int = scan.spec.topics.values.map(partitions.getOrElse(_, 1)).max

  private def tick(): Seq[Envelope] = {
    val known = plan.scans.flatMap(_.spec.topics.values).map(topic => topic -> partitions.getOrElse(topic, 1)).toMap
    val present = ClockOffset(clockMs, known, ended)
    val loading = plan.scans.filter(_.isGated).flatMap(s => s.spec.topics.values.map(_ -> s.loading.toSet)).toMap
    val speaks = clockMoved || known != told.partitions
    val marks = if (speaks) Clock.marks(told, present, plan.scans.map(_.spec.groups).max, loading).toSeq else Nil
    if (speaks) told = present
    clockMoved = false
    marks
  }
}

/** The nodes of a plan, each with its own queue or state. */
private final class LocalPlan(query: String, counters: Counters) {
  private implicit val formats: Formats = DefaultFormats
  val scans = new ArrayBuffer[LocalScan]
  val operators = new ArrayBuffer[LocalOperator]

  /** What a project reads: a scan or an operator. */
  def rows(node: JValue): LocalRows =
    if (kind(node) == "kafka-scan") scan(node, isGated = false, isBare = true) else operator(node, isGated = false)

  private def operator(node: JValue, isGated: Boolean): LocalOperator = {
    val inputs = (node \ "inputs").children.map(input => envelopes(input, isGated || feedsGate(node, input)))
    val found = new LocalOperator(compact(render(node)), inputs, isGated, counters.unhealed(query, _))
    operators += found
    found
  }

  private def envelopes(node: JValue, isGated: Boolean): LocalEnvelopes =
    if (kind(node) == "kafka-scan") scan(node, isGated, isBare = false)
    else {
      val rekeyer = new Rekeyer(RekeySpec.read(compact(render(node))))
      val input = operator(node \ "input", isGated)
      clock => input.changes(clock).flatMap(rekeyer(_))
    }

  private def scan(node: JValue, isGated: Boolean, isBare: Boolean): LocalScan = {
    val spec = IngestSpec.read(node, chunked = !isBare)
    val found = new LocalScan(spec, isGated, new IngestRunner(spec, counters, query))
    scans += found
    found
  }

  private def feedsGate(node: JValue, input: JValue): Boolean =
    (node \ "gate" \ "kind").extractOpt[String].contains("loaded") && (input \ "side").extract[Int] == 1

  private def kind(node: JValue): String = (node \ "kind").extract[String]
}

/** A node whose changes the sink or the next operator reads; `clock` are the clock's marks of the batch. */
private sealed trait LocalRows {
  def changes(clock: Seq[Envelope]): Seq[Changelog]
}

/** An input of an operator: a table, or another operator's changes by a new key. */
private trait LocalEnvelopes {
  def envelopes(clock: Seq[Envelope]): Seq[Envelope]
}

/** A record as [[LocalRun.feed]] takes it. */
private final class LocalRecord(node: JValue) {
  private implicit val formats: Formats = DefaultFormats
  val partition: Int = (node \ "partition").extract[Int]

  def into(record: SourceRecord): Unit = {
    record.partition = partition
    record.offset = (node \ "offset").extract[Long]
    record.timestampMs = (node \ "timestamp").extract[Long]
    record.key = bytes(node \ "key")
    record.value = bytes(node \ "value")
    val headers = (node \ "headers").children.map { header =>
      val name = UTF8String.fromString((header \ "key").extract[String])
      new GenericInternalRow(Array[Any](name, bytes(header \ "value")))
    }
    record.headers = new GenericArrayData(headers.toArray[Any])
  }

  private def bytes(node: JValue): Array[Byte] = node match {
    case JString(text) => Base64.getDecoder.decode(text)
    case _ => null
  }
}

/** One operator's machine and its state, by key group. */
private final class LocalOperator(
    nodeJson: String,
    inputs: Seq[LocalEnvelopes],
    passesLoaded: Boolean,
    tellUnhealed: Iterable[Unhealed] => Unit)
    extends LocalRows {
  private val operator = Operator.read(nodeJson)
  private val timing = operator.spec.timing
  private val states = new mutable.TreeMap[Int, MemoryState]
  private var machine = operator.machine(Overflow.inMemory)
  private val hex = HexFormat.of()

  def changes(clock: Seq[Envelope]): Seq[Changelog] = {
    val marks = if (timing.usesClock) clock else Nil
    val results = new ArrayBuffer[Changelog]
    (inputs.flatMap(_.envelopes(clock)) ++ marks).groupBy(_.group).toSeq.sortBy(_._1).foreach { case (group, rows) =>
      val batch = new GroupBatch
      rows.foreach(batch.add)
      val out: Output = (kind, hash, left, right) => results += Changelog(kind, hash, left, right, batch.recordMs)
      val after = Machine.run(machine, timing, group, batch, states.getOrElseUpdate(group, new MemoryState), out)
      if (passesLoaded && group == 0) Mark.passLoaded(batch, out)
      tellUnhealed(after.unhealed)
    }
    results.toSeq
  }

  def restart(): Unit = {
    states.mapValuesInPlace((_, state) => state.snapshot())
    machine = operator.machine(Overflow.inMemory)
  }

  def cells: JValue =
    JObject(states.toList.map { case (group, state) =>
      group.toString -> JObject(state.all.map { case (cell, value) =>
        hex.formatHex(cell) -> JString(hex.formatHex(value))
      }.toList)
    })

  def restoreCells(cells: JValue): Unit =
    for (JObject(groups) <- Seq(cells); (group, JObject(found)) <- groups) {
      val state = states.getOrElseUpdate(group.toInt, new MemoryState)
      for ((cell, JString(value)) <- found)
        state.put(hex.parseHex(cell), hex.parseHex(value))
    }

  def rows: Array[Long] = {
    val groups = states.values.map(GroupState.load(_).rows)
    Array(groups.map(_(0)).sum, groups.map(_(1)).sum)
  }
}

/** One table's queue of records and its ingest; `loading` are the partitions that it will call loaded. */
private final class LocalScan(val spec: IngestSpec, val isGated: Boolean, runner: IngestRunner)
    extends LocalRows
    with LocalEnvelopes {
  val queue = new ArrayBuffer[LocalRecord]
  var loading: Seq[Int] = Nil
  var isLoaded = false

  /** What the queued records become, marks included: the work of one task. */
  def envelopes(clock: Seq[Envelope]): Seq[Envelope] = {
    runner.start()
    val record = new SourceRecord
    record.topic = UTF8String.fromString(spec.topics.keys.min)
    val rows = queue.iterator.flatMap { given =>
      given.into(record)
      runner.add(record)
    } ++ runner.finish()
    val envelopes = rows.map(EnvelopeRow.read).toVector
    queue.clear()
    envelopes ++ loadedMarks()
  }

  /** A scan that nothing stateful follows: its rows and rejects are changes. Values that an event
    * leaves out stay NULL: no plan has such a scan, but tests of readers have.
    */
  def changes(clock: Seq[Envelope]): Seq[Changelog] =
    envelopes(clock).collect {
      case e if RowKind.isChange(e.kind) || e.kind == RowKind.Reject =>
        Changelog(e.kind, KeyGroup.hash(e.key), e.row, null, e.recordMs)
      case e if e.kind == RowKind.Partial =>
        Changelog(RowKind.UpdateAfter, KeyGroup.hash(e.key), PartialRow.unpack(e.row).row, null, e.recordMs)
    }

  private def loadedMarks(): Seq[Envelope] =
    if (!isLoaded || loading.isEmpty) Nil
    else {
      val sources = for (topic <- spec.topics.values.toSeq; p <- loading) yield Envelope.source(topic, p)
      loading = Nil
      for (source <- sources; group <- 0 until spec.groups)
        yield Envelope.loaded(group, spec.side, source)
    }
}

/** The changes of one input of the sink, to which Python adds columns. */
private final class LocalResults(changes: Seq[Changelog], emitter: Emitter) {
  private val computed = changes.map(_ => new ArrayBuffer[Any])
  private var columns = 0

  def isWaiting: Boolean = columns < emitter.spec.computed.size && changes.nonEmpty

  def question: JObject = {
    val types = emitter.spec.computed(columns).argumentTypes
    val rows = changes.zip(computed).map { case (change, known) =>
      if (emitter.isNeeded(change)) RowJson.write(emitter.arguments(columns, change, known.toSeq), types) else JNull
    }
    JObject("column" -> JInt(columns), "arguments" -> JArray(rows.toList))
  }

  def take(values: Seq[JValue]): Unit = {
    val dataType = emitter.spec.computed(columns).dataType
    computed.zip(values).foreach { case (known, value) => known += RowJson.read(value, dataType) }
    columns += 1
  }

  def write(output: LocalOutput): Unit =
    for ((change, known) <- changes.zip(computed); passing <- emitter.passing(change, known.toSeq))
      output.add(passing, known.toSeq, emitter)
}

/** What one step gives out: result rows, encoded records, and dead letters with their reasons. */
private final class LocalOutput {
  private val rows = new ArrayBuffer[JValue]
  private val records = new ArrayBuffer[JValue]
  private val rejects = new ArrayBuffer[JValue]

  def add(change: Changelog, computed: Seq[Any], emitter: Emitter): Unit =
    if (change.kind == RowKind.Reject) rejects += reject(DeadLetter.unpack(change.left))
    else {
      val values = RowJson.write(emitter.values(change, computed), emitter.spec.schema).arr
      rows += JArray(JString(RowKind.name(change.kind)) :: values)
      if (emitter.spec.sink.isDefined) {
        val written = emitter.record(change, computed)
        records += JObject(record(written) ++ metadata(written) ++ List(
          "retraction" -> JBool(written.getBoolean(7)),
          "recordMs" -> JInt(written.getLong(8))))
      }
    }

  def json: String =
    compact(
      render(
        JObject(
          "rows" -> JArray(rows.toList),
          "records" -> JArray(records.toList),
          "rejects" -> JArray(rejects.toList))))

  /** What a record and a dead letter begin with. */
  private def record(row: InternalRow): List[JField] =
    List(
      "topic" -> JString(row.getUTF8String(0).toString),
      "key" -> bytes(row.getBinary(1)),
      "value" -> bytes(row.getBinary(2)))

  /** What metadata columns of the sink have made of a record. */
  private def metadata(row: InternalRow): List[JField] = {
    val timestamp = Option.when(!row.isNullAt(4))("timestamp" -> JInt(row.getLong(4)))
    val headers = Option.when(!row.isNullAt(5))("headers" -> headersOf(row.getArray(5)))
    timestamp.toList ++ headers.map { case (name, found) => name -> json(found) }
  }

  private def headersOf(headers: ArrayData): List[(String, Array[Byte])] =
    headers.toArray[InternalRow](SourceRecord.HeaderType).toList
      .map(header => header.getUTF8String(0).toString -> header.getBinary(1))

  private def json(headers: List[(String, Array[Byte])]): JValue =
    JArray(headers.map { case (name, value) => JArray(List(JString(name), bytes(value))) })

  private def reject(deadLetter: InternalRow): JValue = {
    val headers = headersOf(deadLetter.getArray(4))
    JObject(record(deadLetter) ++ List(
      "reason" -> JString(new String(headers.toMap.apply(DeadLetter.ReasonHeader), StandardCharsets.UTF_8)),
      "headers" -> json(headers)))
  }

  private def bytes(value: Array[Byte]): JValue =
    if (value == null) JNull else JString(Base64.getEncoder.encodeToString(value))
}
