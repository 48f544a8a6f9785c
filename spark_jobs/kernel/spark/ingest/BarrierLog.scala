package org.apache.spark.sql.rejoin.ingest

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.{Files, NoSuchFileException, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.network.util.JavaUtils

/** Where the readers of one epoch stood at each barrier; each notes it before it sends the barrier.
  *
  * {{{
  * barriers/EPOCH/noted          what counts of earlier starts: lines BARRIER READER TEXT
  * barriers/EPOCH/START/READER   of a start: how many readers the epoch has, then lines BARRIER TEXT
  * }}}
  *
  * A writer commits a step only if all readers have noted the barrier behind it, or the last one of the epoch. So an
  * epoch that is repeated has the barriers that all of its readers have noted. What some of them have noted beyond
  * those is read as if it were new.
  */
private[rejoin] final class BarrierLog(folder: Path) {
  import BarrierLog._

  private val before = startsIn(folder)

  /** Barriers of earlier starts, in their order: what each reader has noted. */
  val noted: Seq[(Long, Map[String, String])] = {
    val all = notedIn(folder)
    if (before.nonEmpty) write(all)
    all.groupBy(_.barrier).toSeq.sortBy(_._1).map { case (barrier, notes) =>
      barrier -> notes.map(note => note.reader -> note.text).toMap
    }
  }

  /** A task that has lingered from an earlier start finds its folder no more. */
  private val own = Files.createDirectories(folder.resolve(before.lastOption.fold(0L)(numberOf(_) + 1).toString))
  before.foreach(delete)

  /** @param readers
    *   how many readers the epoch has
    */
  def open(reader: String, readers: Int): BarrierNotes = {
    val notes = new BarrierNotes(own.resolve(reader))
    notes.line(readers.toString)
    notes
  }

  private def write(notes: Seq[Note]): Unit = {
    val made = folder.resolve(s".$Noted")
    Files.write(made, notes.map(note => s"${note.barrier} ${note.reader} ${note.text}\n").mkString.getBytes(UTF_8))
    Files.move(made, folder.resolve(Noted), ATOMIC_MOVE, REPLACE_EXISTING)
  }
}

private[rejoin] object BarrierLog {

  /** That of an epoch; those of the epochs before it are no longer needed. */
  def of(checkpoint: String, epoch: Long): BarrierLog = {
    val all = folderOf(checkpoint)
    filesIn(all).filter(numberOf(_) < epoch).foreach(delete)
    new BarrierLog(all.resolve(epoch.toString))
  }

  /** The last barrier of an epoch that counts; -1 for none. */
  def last(checkpoint: String, epoch: Long): Long =
    notedIn(folderOf(checkpoint).resolve(epoch.toString)).lastOption.fold(-1L)(_.barrier)

  private def folderOf(checkpoint: String): Path =
    Path.of(new org.apache.hadoop.fs.Path(checkpoint).toUri.getPath).resolve("barriers")

  private final val Noted = "noted"

  private final case class Note(barrier: Long, reader: String, text: String)

  /** What counts of earlier starts: the newest of them may not be among the noted ones yet. */
  private def notedIn(folder: Path): Seq[Note] = {
    val old = linesOf(folder.resolve(Noted)).map(_.split(" ", 3)).map(line => Note(line(0).toLong, line(1), line(2)))
    old ++ startsIn(folder).lastOption.toSeq.flatMap(notesOf(_, old.lastOption.fold(-1L)(_.barrier)))
  }

  private def startsIn(folder: Path): Seq[Path] = filesIn(folder).filter(Files.isDirectory(_)).sortBy(numberOf)

  private def numberOf(folder: Path): Long = folder.getFileName.toString.toLong

  /** Those of a start as far as all of its readers have them, behind the barrier that was noted last before. */
  private def notesOf(start: Path, before: Long): Seq[Note] = {
    val files = filesIn(start).map(file => file.getFileName.toString -> linesOf(file))
    val isComplete = files.nonEmpty && files.forall(_._2.headOption.contains(files.size.toString))
    val notes = files.map { case (reader, lines) =>
      lines.drop(1).map(_.split(" ", 2)).map(line => Note(line(0).toLong, reader, line(1)))
    }
    val last = if (isComplete) notes.map(_.lastOption.fold(-1L)(_.barrier)).min else -1L
    val barriers = notes.flatten.map(_.barrier).distinct.sorted
    val all = notes.flatMap(moved(_, barriers, before))
    all.filter(note => note.barrier > before && note.barrier <= last).sortBy(note => (note.barrier, note.reader))
  }

  /** A reader whose epoch ends while others go on has sent the last barrier in place of the next one. */
  private def moved(notes: Seq[Note], barriers: Seq[Long], before: Long): Seq[Note] =
    if (!notes.lastOption.exists(_.barrier == Barriers.Last)) notes
    else {
      val running = notes.dropRight(1).lastOption.fold(before)(_.barrier)
      notes.dropRight(1) :+ notes.last.copy(barrier = barriers.find(_ > running).getOrElse(Barriers.Last))
    }

  private def filesIn(folder: Path): Seq[Path] =
    try Using.resource(Files.list(folder))(_.iterator.asScala.toVector)
    catch { case _: NoSuchFileException => Nil }

  private def delete(folder: Path): Unit = JavaUtils.deleteRecursively(folder.toFile)

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
