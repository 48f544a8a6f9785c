package rejoin.core.row

import java.nio.ByteBuffer
import java.util

/** A change of a row's primary key, by its place in the database's log. Debezium writes two events for it, one under
  * the old key and one under the new one, which have nothing but that place in common.
  */
final case class KeyChange(log: Long, committedMs: Long) {
  def bytes: Array[Byte] = ByteBuffer.allocate(KeyChange.Size).putLong(log).putLong(committedMs).array

  def write(out: CellWriter): Unit = out.signed(log).signed(committedMs)
}

object KeyChange {
  private final val Size = 16

  def apply(at: SourcePosition): KeyChange = KeyChange(at.log, at.committedMs)

  def read(in: CellReader): KeyChange = KeyChange(in.signed(), in.signed())

  /** Reads what `bytes` gave. */
  def of(bytes: Array[Byte]): KeyChange = {
    val in = ByteBuffer.wrap(bytes)
    KeyChange(in.getLong, in.getLong)
  }
}

/** Which values a row lacks (ordinals, at least one), and the key change that its old row has them from;
  * null where nobody has them.
  */
final class Lack(val missing: util.BitSet, val change: KeyChange) {

  /** What is lacking still where only the values `others` are lacking on this row's way; null for none. */
  def within(others: util.BitSet): Lack = {
    val both = missing.clone().asInstanceOf[util.BitSet]
    both.and(others)
    if (both.isEmpty) null else new Lack(both, change)
  }
}

object Lack {
  def write(lack: Lack, out: CellWriter): Unit =
    if (lack == null) out.byte(0)
    else {
      out.byte(if (lack.change == null) 1 else 2).blob(lack.missing.toByteArray)
      if (lack.change != null) lack.change.write(out)
    }

  def read(in: CellReader): Lack = in.byte() match {
    case 0 => null
    case form => new Lack(util.BitSet.valueOf(in.blob()), if (form == 1) null else KeyChange.read(in))
  }
}

/** What a normaliser reports to [[KeyChanges]].
  *
  * The news of one batch are facts about different keys and key changes: their order does not count.
  */
private[rejoin] sealed trait KeyChangeNews

/** The row that has left its key by the change; null if it was unknown. The row under the new key takes over
  * the claim on what this one lacks itself.
  */
private[rejoin] final case class OldRow(change: KeyChange, row: Array[Byte], lack: Lack) extends KeyChangeNews

/** No row needs the old row of the change, or none any longer. */
private[rejoin] final case class Unclaimed(change: KeyChange) extends KeyChangeNews

/** The row of a key that lacks values, or did before this batch.
  *
  * @param shown
  *   the row that the normaliser itself has emitted for the key, null for none
  * @param row
  *   null if the key has none now
  * @param unhealed
  *   the events of this batch that the row would be healed for
  */
private[rejoin] final case class RowNews(
    key: Array[Byte],
    shown: Array[Byte],
    row: Array[Byte],
    lack: Lack,
    unhealed: Seq[Unhealed])
    extends KeyChangeNews

/** The row of a key has expired. */
private[rejoin] final case class Forgotten(key: Array[Byte]) extends KeyChangeNews

private[rejoin] object KeyChangeNews {
  def pack(news: KeyChangeNews): Array[Byte] = {
    val out = new CellWriter
    news match {
      case OldRow(change, row, lack) =>
        change.write(out.byte(1))
        Lack.write(lack, out.nullable(row))
      case Unclaimed(change) => change.write(out.byte(2))
      case RowNews(key, shown, row, lack, unhealed) =>
        Lack.write(lack, out.byte(3).blob(key).nullable(shown).nullable(row))
        out.varLong(unhealed.size.toLong)
        unhealed.foreach(_.write(out))
      case Forgotten(key) => out.byte(4).blob(key)
    }
    out.result()
  }

  def unpack(bytes: Array[Byte]): KeyChangeNews = {
    val in = new CellReader(bytes)
    in.byte() match {
      case 1 => OldRow(KeyChange.read(in), in.nullable(), Lack.read(in))
      case 2 => Unclaimed(KeyChange.read(in))
      case 3 =>
        RowNews(in.blob(), in.nullable(), in.nullable(), Lack.read(in), Seq.fill(in.int())(Unhealed.read(in)))
      case 4 => Forgotten(in.blob())
      case other => throw new IllegalArgumentException(s"news of key changes have no form $other")
    }
  }
}
