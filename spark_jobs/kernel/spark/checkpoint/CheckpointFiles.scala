package org.apache.spark.sql.rejoin.checkpoint

import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths, StandardOpenOption}

import scala.annotation.tailrec
import scala.util.{Failure, Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, PathIOException}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** The driver's own small files in a query's checkpoint folder, on any file system that Spark can use. */
final class CheckpointFiles(folder: String, hadoop: Configuration) {
  def this(spark: SparkSession, folder: String) = this(folder, spark.sessionState.newHadoopConf())

  /** Without a session, for a look from outside. */
  def this(folder: String) = this(folder, HadoopSettings.forFilesIn(folder))

  private val root = new Path(folder)
  private val files = CheckpointFileManager.create(root, hadoop)
  private var lockFile: FileChannel = _

  /** Null if there is none. */
  def read(name: String): String = read(new Path(root, name), CheckpointFiles.Readings)

  @tailrec
  private def read(path: Path, readings: Int): String =
    if (!files.exists(path)) null
    else
      Try(Using.resource(files.open(path))(in => new String(in.readAllBytes(), UTF_8))) match {
        // S3A asks for the object that it found, which was replaced before it was read
        case Failure(_: PathIOException) if readings > 1 => read(path, readings - 1)
        case text => text.get
      }

  /** Readers see the old text or the new one. */
  def write(name: String, text: String): Unit = {
    val path = new Path(root, name)
    files.mkdirs(path.getParent)
    val out = files.createAtomic(path, overwriteIfPossible = true)
    try {
      out.write(text.getBytes(UTF_8))
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }

  /** Removes a file, or a folder with all that is in it; nothing if there is none. */
  def delete(name: String): Unit = files.delete(new Path(root, name))

  /** The bytes of all files in a folder. */
  def size(folder: String): Long = {
    val path = new Path(root, folder)
    if (files.exists(path)) path.getFileSystem(hadoop).getContentSummary(path).getLength else 0
  }

  /** The highest number among the file names of a log folder; -1 if it has none. */
  def last(log: String): Long = entries(log).lastOption.getOrElse(-1)

  /** The numbers among the file names of a log folder, ascending. */
  def entries(log: String): Array[Long] = {
    val path = new Path(root, log)
    if (!files.exists(path)) Array.empty
    else files.list(path).map(_.getPath.getName).filter(_.forall(_.isDigit)).map(_.toLong).sorted
  }

  /** Whether [[lock]] keeps others out. */
  def hasLocks(): Boolean = files.createCheckpointDirectory().toUri.getScheme == "file"

  /** False while another process works in the folder; always true where the file system has no locks.
    *
    * The lock is the JVM's: that of a killed driver lasts until its JVM has stopped writing too.
    */
  def lock(): Boolean = {
    val uri = files.createCheckpointDirectory().toUri
    uri.getScheme != "file" || {
      val path = Paths.get(uri.getPath, "rejoin", ".lock")
      Files.createDirectories(path.getParent)
      lockFile = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
      val held =
        try lockFile.tryLock() != null
        catch { case _: OverlappingFileLockException => false }
      if (!held) lockFile.close()
      held
    }
  }

  def unlock(): Unit = if (lockFile != null) lockFile.close()
}

private object CheckpointFiles {
  /** Before a file that is replaced time and again is an error. */
  val Readings = 20
}
