package rejoin.core.results

import rejoin.core.row.{CellReader, RowKind}

/** Receives the changes of a [[ChangeFile]], each for so many equal rows. */
private[results] trait ChangeVisitor {
  def visit(kind: Byte, left: Array[Byte], right: Array[Byte], copies: Long): Unit
}

/** Result changes of one key that wait in a file, in the order in which they came. */
private[results] final class ChangeFile(overflow: Overflow) {
  import ChangeFile._

  private val file = overflow.open()
  private var lastLeft: Array[Byte] = _
  private var lastRight: Array[Byte] = _
  private var memoryBytes = 0L

  var hasAdditions = false
  var hasRetractions = false

  /** About what the changes take in memory. */
  def bytes: Long = memoryBytes

  /** A row that meets many others is written once. */
  def add(kind: Byte, left: Array[Byte], right: Array[Byte], copies: Long): Unit = {
    if (RowKind.isAdd(kind)) hasAdditions = true else hasRetractions = true
    memoryBytes += bytesOf(left, right)
    file.record.byte(kind.toInt).varLong(copies)
    write(left, lastLeft)
    write(right, lastRight)
    file.add()
    lastLeft = left
    lastRight = right
  }

  private def write(row: Array[Byte], last: Array[Byte]): Unit =
    if (row != null && (row eq last)) file.record.byte(SameAsBefore) else file.record.nullable(row)

  def foreach(visitor: ChangeVisitor): Unit = {
    lastLeft = null
    lastRight = null
    file.iterator.foreach { in =>
      val kind = in.byte().toByte
      val copies = in.varLong()
      lastLeft = read(in, lastLeft)
      lastRight = read(in, lastRight)
      visitor.visit(kind, lastLeft, lastRight, copies)
    }
  }

  private def read(in: CellReader, last: Array[Byte]): Array[Byte] = in.byte() match {
    case 0 => null
    case SameAsBefore => last
    case _ => in.blob()
  }

  /** Several files with the changes of this one, which is deleted; `partOf` chooses a file for each row. */
  def split(parts: Int)(partOf: (Array[Byte], Array[Byte]) => Int): Seq[ChangeFile] = {
    val found = new Array[ChangeFile](parts)
    foreach { (kind, left, right, copies) =>
      val part = partOf(left, right)
      if (found(part) == null) found(part) = new ChangeFile(overflow)
      found(part).add(kind, left, right, copies)
    }
    delete()
    found.toSeq.filter(_ != null).tapEach(_.complete())
  }

  private def complete(): Unit = {
    lastLeft = null
    lastRight = null
    file.complete()
  }

  def delete(): Unit = file.delete()
}

private[results] object ChangeFile {
  private final val SameAsBefore = 2

  /** About what a change takes in memory. */
  def bytesOf(left: Array[Byte], right: Array[Byte]): Long =
    32L + (if (left == null) 0 else left.length) + (if (right == null) 0 else right.length)
}
