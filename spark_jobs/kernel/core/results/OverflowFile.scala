package rejoin.core.results

import java.io.{BufferedInputStream, BufferedOutputStream, Closeable, DataInputStream, DataOutputStream, EOFException,
  File, FileInputStream, FileOutputStream, IOException}
import java.nio.file.Files

import net.jpountz.lz4.{LZ4BlockInputStream, LZ4BlockOutputStream}

import rejoin.core.row.{CellReader, CellWriter}

/** A compressed file of records: first written, then read as often as need be, in the order in which they came.
  *
  * @param deleted
  *   is told when the file is gone
  */
final class OverflowFile private[results] (file: File, deleted: OverflowFile => Unit) {
  import OverflowFile._

  private var output: DataOutputStream = new DataOutputStream(
    new LZ4BlockOutputStream(new BufferedOutputStream(new FileOutputStream(file)), BlockBytes))
  private var input: Closeable = _

  /** The record that [[add]] appends. */
  val record = new CellWriter

  /** Appends what `record` has and empties it. */
  def add(): Unit = {
    output.writeInt(record.length)
    record.writeTo(output)
    record.reset()
  }

  /** Reads from the first record on; nothing is added from now on. */
  def iterator: Iterator[CellReader] = {
    complete()
    val blocks = LZ4BlockInputStream.newBuilder().build(new BufferedInputStream(new FileInputStream(file)))
    val in = new DataInputStream(blocks)
    input = in
    Iterator.continually(next(in)).takeWhile(_ != null)
  }

  private def next(in: DataInputStream): CellReader = {
    val length =
      try in.readInt()
      catch { case _: EOFException => -1 }
    if (length < 0) {
      in.close()
      null
    } else {
      val bytes = new Array[Byte](length)
      in.readFully(bytes)
      new CellReader(bytes)
    }
  }

  /** Gives up the memory with which it was written. */
  def complete(): Unit = if (output != null) {
    output.close()
    output = null
  }

  def delete(): Unit = {
    // what a full disk did not take is not wanted any more
    try complete()
    catch { case _: IOException => output = null }
    if (input != null) input.close()
    Files.deleteIfExists(file.toPath)
    deleted(this)
  }
}

private object OverflowFile {
  private final val BlockBytes = 1 << 15
}
