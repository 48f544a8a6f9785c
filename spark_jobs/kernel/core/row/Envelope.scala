package rejoin.core.row

/** What an [[Envelope]] or a [[Changelog]] row says; the numbers are part of the state format. */
object RowKind {
  final val Insert: Byte = 0
  final val UpdateBefore: Byte = 1
  final val UpdateAfter: Byte = 2
  final val Delete: Byte = 3

  /** An upsert whose event leaves values out; `row` is a packed [[PartialRow]]. */
  final val Partial: Byte = 4

  /** The deletion of a row that goes on under another primary key; `row` has a [[SourcePosition]], and
    * so has that of the two next kinds. The three come where [[KeyChanges]] follows the normaliser.
    */
  final val MovedAway: Byte = 5

  /** An upsert under the key that a row has got. */
  final val MovedHere: Byte = 6

  /** The same, leaving values out; `row` is a packed [[PartialRow]]. */
  final val MovedPartial: Byte = 7

  /** Several data rows of one group, packed by [[RowChunks]]. */
  final val Rows: Byte = 8

  /** The operator `source` waits for no input, and may be waited for by none until its next watermark. */
  final val Idle: Byte = 15

  /** No more rows before `time` from the partition `source`, which has just had records. */
  final val Watermark: Byte = 16

  /** Processing time is now `time`, and the topic with the index `source` has `seq` partitions. */
  final val Clock: Byte = 17

  /** The partition `source` has been read up to where it ended when the query first started. */
  final val Loaded: Byte = 18

  /** Every input has ended. */
  final val End: Byte = 19

  /** The table was emptied: no row of the partition `source` from before `seq` is left; `row` is a
    * [[SourcePosition]] or nothing.
    */
  final val Truncate: Byte = 20

  /** What a normaliser tells [[KeyChanges]]; `row` is a packed [[KeyChangeNews]]. */
  final val News: Byte = 21

  /** In real-time mode: whoever sends it has no more for this epoch. */
  final val EpochEnd: Byte = 22

  /** In real-time mode: nothing was read between the clock's last row and `time`; `seq` is 1 if the query has just
    * been started.
    */
  final val Resumed: Byte = 23

  /** In real-time mode with transactions: the reader `source`, of `time` readers, has no more for the step `seq`. */
  final val Barrier: Byte = 24

  /** A record that could not become a row; `row` is a packed [[DeadLetter]]. */
  final val Reject: Byte = 32

  private val Names = Array("+I", "-U", "+U", "-D")

  /** Whether a row of this kind is one of the changelog's own four: +I, -U, +U, -D. */
  def isChange(kind: Byte): Boolean = kind <= Delete

  /** Whether an envelope holds one row. */
  def isRow(kind: Byte): Boolean = kind <= MovedPartial

  /** Whether an envelope holds no row, but says how far time or a partition has come. */
  def isMark(kind: Byte): Boolean =
    (kind >= Idle && kind <= End) || kind == EpochEnd || kind == Resumed || kind == Barrier

  /** Whether a row of this kind adds a row to the table, rather than taking one away. */
  def isAdd(kind: Byte): Boolean = kind == Insert || kind == UpdateAfter

  /** Flink's short form of a kind of data row. */
  def name(kind: Byte): String = Names(kind.toInt)

  def parse(name: String): Byte = Names.indexOf(name) match {
    case -1 => throw new IllegalArgumentException(s"'$name' is not one of ${Names.mkString(", ")}")
    case kind => kind.toByte
  }
}

/** What flows into stateful operators: data rows, marks and rejects.
  *
  * @param group
  *   key group, by [[KeyGroup]]
  * @param side
  *   0 left or only input, 1 right
  * @param time
  *   event time of the row in milliseconds, Long.MinValue if unknown; or the time of the mark
  * @param source
  *   topic index * 65536 + partition
  * @param seq
  *   offset of the record
  * @param key
  *   packed join key
  * @param row
  *   packed row of the columns that the query needs
  * @param recordMs
  *   timestamp of the newest Kafka record behind it, in milliseconds; Long.MinValue if unknown. Measures
  *   latency; no result depends on it.
  */
final case class Envelope(
    group: Int,
    side: Byte,
    kind: Byte,
    time: Long,
    source: Int,
    seq: Long,
    key: Array[Byte],
    row: Array[Byte],
    recordMs: Long = Envelope.NoTime)

object Envelope {
  final val NoTime: Long = Long.MinValue

  /** The clock among the readers of an epoch. */
  final val ClockReader: Int = -1

  private val Nothing = new Array[Byte](0)

  def source(topicIndex: Int, partition: Int): Int = topicIndex * 65536 + partition

  def topicOf(source: Int): Int = source / 65536

  def partitionOf(source: Int): Int = source % 65536

  def watermark(group: Int, side: Byte, source: Int, timeMs: Long, recordMs: Long = NoTime): Envelope =
    mark(RowKind.Watermark, group, side, source, timeMs, recordMs)

  def loaded(group: Int, side: Byte, source: Int, recordMs: Long = NoTime): Envelope =
    mark(RowKind.Loaded, group, side, source, 0, recordMs)

  def clock(group: Int, topicIndex: Int, partitions: Int, timeMs: Long): Envelope =
    mark(RowKind.Clock, group, 0, topicIndex, timeMs).copy(seq = partitions.toLong)

  def end(group: Int): Envelope = mark(RowKind.End, group, 0, 0, Long.MaxValue)

  def epochEnd(group: Int, side: Byte): Envelope = mark(RowKind.EpochEnd, group, side, 0, 0)

  def barrier(group: Int, side: Byte, reader: Int, readers: Int, step: Long): Envelope =
    mark(RowKind.Barrier, group, side, reader, readers.toLong).copy(seq = step)

  def resumed(group: Int, timeMs: Long, isStart: Boolean): Envelope =
    mark(RowKind.Resumed, group, 0, 0, timeMs).copy(seq = if (isStart) 1L else 0L)

  private[row] def mark(
      kind: Byte,
      group: Int,
      side: Byte,
      source: Int,
      timeMs: Long,
      recordMs: Long = NoTime): Envelope =
    Envelope(group, side, kind, timeMs, source, 0, Nothing, Nothing, recordMs)

  /** The rows of a step that [[RowChunks]] has packed; their record timestamps count from `recordMs`. */
  def rows(group: Int, side: Byte, count: Int, packed: Array[Byte], recordMs: Long, step: Long = NoTime): Envelope =
    Envelope(group, side, RowKind.Rows, step, 0, count.toLong, Nothing, packed, recordMs)

  def truncate(group: Int, side: Byte, source: Int, offset: Long, position: Array[Byte]): Envelope =
    content(RowKind.Truncate, group, side, source, offset, position)

  def reject(group: Int, side: Byte, source: Int, seq: Long, deadLetter: Array[Byte]): Envelope =
    content(RowKind.Reject, group, side, source, seq, deadLetter)

  def news(side: Byte, seq: Long, packed: Array[Byte]): Envelope = content(RowKind.News, 0, side, 0, seq, packed)

  private def content(kind: Byte, group: Int, side: Byte, source: Int, seq: Long, row: Array[Byte]): Envelope =
    Envelope(group, side, kind, NoTime, source, seq, Nothing, row)
}

/** What comes out of a stateful operator: packed rows of the left and right input, side by side.
  *
  * @param hash
  *   of the join key; chooses the sink partition of records without a key
  * @param left
  *   for a reject, the packed [[DeadLetter]]
  * @param right
  *   null where there is no right row
  * @param recordMs
  *   as in an [[Envelope]]
  */
final case class Changelog(
    kind: Byte,
    hash: Int,
    left: Array[Byte],
    right: Array[Byte],
    recordMs: Long = Envelope.NoTime)
