package rejoin.core.time

import rejoin.core.row.Envelope
import rejoin.core.state.{Cell, KeyedState, StateCell}

/** When the probe rows of a processing-time temporal join may look at the build side.
  *
  * {{{
  * cell 'B' : version, waiting since, build watermark, opened at
  * }}}
  * Every group receives every mark, so an operator's gates open in one and the same batch, and never
  * close again. Rules: docs/semantics.md, "Bootstrap gate".
  */
final class BootstrapGate(spec: GateSpec) {
  import BootstrapGate._

  private val cell = new StateCell('B')
  private var waitingSince = Unknown
  private var buildWatermark = Unknown

  /** Processing time at which idle state starts to age: Long.MinValue without a gate, MaxValue while it is closed. */
  var openedAt: Long = Long.MinValue

  def isClosed(group: GroupState): Boolean = spec.kind != NoGate && !group.isOpen

  /** Opens the gate if its time has come; true in the batch in which it opens. */
  def advance(group: GroupState, state: KeyedState): Boolean = spec.kind != NoGate && {
    load(state)
    val opens = !group.isOpen && (isReady(group.watermarks) || isTimedOut(group))
    if (opens) {
      group.isOpen = true
      openedAt = group.now
    }
    cell.write().signed(waitingSince).signed(buildWatermark).signed(openedAt)
    cell.save(state)
    opens
  }

  private def isReady(marks: Watermarks): Boolean =
    if (spec.kind == Loaded) marks.isLoaded(spec.build)
    else marks.isEnd || marks.inputWatermark(spec.build).exists(_ >= spec.atMs)

  private def isTimedOut(group: GroupState): Boolean = {
    restartWait(group)
    val isOver = spec.timeoutMs > 0 && waitingSince != Unknown && group.now - waitingSince >= spec.timeoutMs
    if (isOver && spec.onTimeout == Fail) throw new IllegalStateException(problem(group.watermarks))
    if (isOver) group.gateTimeouts += 1
    isOver
  }

  /** The wait starts with the clock's first row, and again whenever the build side's watermark moves. */
  private def restartWait(group: GroupState): Unit = {
    if (waitingSince == Unknown) waitingSince = group.now
    if (spec.kind == AtWatermark)
      group.watermarks.inputWatermark(spec.build).filter(_ > buildWatermark).foreach { moved =>
        buildWatermark = moved
        waitingSince = group.now
      }
  }

  private def problem(marks: Watermarks): String = {
    val missing = marks.sourcesOf(spec.build).filterNot { source =>
      if (spec.kind == Loaded) marks.isLoaded(source) else marks.ofSource(source).exists(_ >= spec.atMs)
    }
    val partitions =
      if (missing.isEmpty) "its partitions are not known yet"
      else {
        val aim =
          if (spec.kind == Loaded) "the end that it had at the first start" else s"the watermark ${spec.atMs} ms"
        s"not at $aim: partition ${missing.map(Envelope.partitionOf).mkString(", ")}"
      }
    s"the build side '${spec.table}' is not loaded after ${spec.timeoutMs} ms of waiting ($partitions); " +
      "raise 'rejoin.bootstrap.timeout', or set 'rejoin.bootstrap.on-timeout' = 'go' to join with what is there"
  }

  private def load(state: KeyedState): Unit = {
    waitingSince = Unknown
    buildWatermark = Unknown
    openedAt = Long.MaxValue
    val in = cell.open(Cell.NoKey, state)
    if (in != null) {
      waitingSince = in.signed()
      buildWatermark = in.signed()
      openedAt = in.signed()
    }
  }
}

object BootstrapGate {
  val NoGate = "none"
  val Loaded = "loaded"
  val AtWatermark = "watermark"
  val Fail = "fail"

  /** The one slot under which keys with waiting rows stand in the due index. */
  final val Slot = 0L

  private final val Unknown = Long.MinValue
}
