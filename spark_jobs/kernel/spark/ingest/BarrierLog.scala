package org.apache.spark.sql.rejoin.ingest

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.{Files, NoSuchFileException, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** Where the readers of one epoch stood at each barrier; each notes it before it sends the barrier.
  *
  * {{{
  * barriers/EPOCH/noted       what counts of earlier starts: lines BARRIER READER TEXT
  * barriers/EPOCH/READER      of this start: how many readers the epoch has, then lines BARRIER TEXT
  * }}}
  *
  * A writer commits a step only if all readers have noted the barrier behind it. So an epoch that is repeated has the
  * barriers that all of its readers have noted. What some of them have noted beyond those is read as if it were new.
  */
private[rejoin] final class BarrierLog(folder: Path) {
  import BarrierLog._

  /** Barriers of earlier starts, in their order: what each reader has noted. */
  val noted: Seq[(Long, Map[String, String])] = {
    val before = linesOf(folder.resolve(Noted)).map(_.split(" ", 3)).map(line => Note(line(0).toLong, line(1), line(2)))
    val last = before.lastOption.fold(-1L)(_.barrier)
    val all = before ++ newNotes.filter(_.barrier > last)
    if (all.size > before.size) write(all)
    readers.foreach(Files.delete(_))
    all.groupBy(_.barrier).toSeq.sortBy(_._1).map { case (barrier, notes) =>
      barrier -> notes.map(note => note.reader -> note.text).toMap
    }
  }

  /** @param readers
    *   how many readers the epoch has
    */
  def open(reader: String, readers: Int): BarrierNotes = {
    Files.createDirectories(folder)
    val notes = new BarrierNotes(folder.resolve(reader))
    notes.line(readers.toString)
    notes
  }

  /** Those of the start before this one, as far as all of its readers have them. */
  private def newNotes: Seq[Note] = {
    val files = readers.map(file => file.getFileName.toString -> linesOf(file))
    val isComplete = files.forall(_._2.headOption.contains(files.size.toString))
    val notes = files.map { case (reader, lines) =>
      lines.drop(1).map(_.split(" ", 2)).map(line => Note(line(0).toLong, reader, line(1)))
    }
    val last = if (isComplete && notes.nonEmpty) notes.map(_.lastOption.fold(-1L)(_.barrier)).min else -1L
    notes.flatten.filter(_.barrier <= last).sortBy(_.barrier)
  }

  private def write(notes: Seq[Note]): Unit = {
    val made = folder.resolve(s".$Noted")
    Files.write(made, notes.map(note => s"${note.barrier} ${note.reader} ${note.text}\n").mkString.getBytes(UTF_8))
    Files.move(made, folder.resolve(Noted), ATOMIC_MOVE, REPLACE_EXISTING)
  }

  private def readers: Seq[Path] = filesIn(folder).filterNot(isOwn).sorted

  private def isOwn(file: Path): Boolean = file.getFileName.toString.stripPrefix(".") == Noted
}

private object BarrierLog {

  /** That of an epoch; those of the epochs before it are no longer needed. */
  def of(checkpoint: String, epoch: Long): BarrierLog = {
    val all = Path.of(new org.apache.hadoop.fs.Path(checkpoint).toUri.getPath).resolve("barriers")
    filesIn(all).filter(_.getFileName.toString.toLong < epoch).foreach { old =>
      filesIn(old).foreach(Files.delete(_))
      Files.delete(old)
    }
    new BarrierLog(all.resolve(epoch.toString))
  }

  private final val Noted = "noted"

  private final case class Note(barrier: Long, reader: String, text: String)

  private def filesIn(folder: Path): Seq[Path] =
    try Using.resource(Files.list(folder))(_.iterator.asScala.toVector)
    catch { case _: NoSuchFileException => Nil }

  /** Without a last line that a crash has cut off. */
  private def linesOf(file: Path): Seq[String] =
    try {
      val text = Files.readString(file)
      text.take(text.lastIndexOf('\n') + 1).linesIterator.toSeq
    } catch { case _: NoSuchFileException => Nil }
}

/** The notes of one reader. */
private[rejoin] final class BarrierNotes(file: Path) extends AutoCloseable {
  private val out = Files.newOutputStream(file)

  def add(barrier: Long, text: String): Unit = line(s"$barrier $text")

  private[ingest] def line(text: String): Unit = out.write(s"$text\n".getBytes(UTF_8))

  override def close(): Unit = out.close()
}
