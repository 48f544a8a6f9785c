package rejoin.core.row

import java.nio.charset.StandardCharsets.UTF_8
import java.util

/** An upsert whose event leaves values out, on its way to the machine that holds the key's row before it.
  *
  * PostgreSQL does not log a large value (TOAST) that an UPDATE leaves as it was.
  *
  * @param row
  *   packed, NULL where a value is missing
  * @param missing
  *   ordinals of the packed row
  */
final class PartialRow(val row: Array[Byte], val missing: util.BitSet, val unhealed: Unhealed)

object PartialRow {

  /** The bytes of an envelope of kind [[RowKind.Partial]] or [[RowKind.MovedPartial]]. */
  def pack(partial: PartialRow): Array[Byte] = {
    val out = new CellWriter().blob(partial.row).blob(partial.missing.toByteArray)
    partial.unhealed.write(out)
    out.result()
  }

  def unpack(bytes: Array[Byte]): PartialRow = {
    val in = new CellReader(bytes)
    val row = in.blob()
    val missing = util.BitSet.valueOf(in.blob())
    new PartialRow(row, missing, Unhealed.read(in))
  }
}

/** What becomes of the record of a partial row if the values that it leaves out are found nowhere.
  *
  * @param policy
  *   the table's policy for bad records, see [[OnError]]
  * @param content
  *   under `dead-letter` the packed [[DeadLetter]], under `fail` the message as text, under `skip` nothing
  */
final class Unhealed(val table: String, val policy: String, val content: Array[Byte]) {

  /** Fails, emits the record as a dead letter, or does nothing, as the policy says. */
  def settle(out: Output): Unit =
    if (policy == OnError.Fail) throw new RejectedRecordException(new String(content, UTF_8))
    else if (policy == OnError.DeadLetter) out.emit(RowKind.Reject, KeyGroup.hash(content), content, null)

  def write(out: CellWriter): Unit = out.blob(table.getBytes(UTF_8)).blob(policy.getBytes(UTF_8)).blob(content)
}

object Unhealed {

  /** Reads what [[Unhealed.write]] wrote. */
  def read(in: CellReader): Unhealed =
    new Unhealed(new String(in.blob(), UTF_8), new String(in.blob(), UTF_8), in.blob())
}
