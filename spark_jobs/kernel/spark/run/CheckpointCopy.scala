package org.apache.spark.sql.rejoin.run

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using
import scala.util.matching.Regex

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileUtil, Path}
import org.json4s.DefaultFormats
import org.json4s.Extraction.decompose
import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** Copies the checkpoint of a job, file by file, to another folder, on any file systems that Spark can use.
  *
  * Spark keeps the full paths of its state schemas in the metadata of each operator. In the copy they lead to
  * the copy's own.
  */
final class CheckpointCopy(source: String, target: String) {
  import CheckpointCopy._

  private val hadoop = new Configuration
  private val from = qualified(source)
  private val to = qualified(target)
  private val readers = CheckpointFileManager.create(from, hadoop)
  private lazy val writers = CheckpointFileManager.create(to, hadoop)

  /** All files as JSON `{path below the folder: bytes}`; temporary ones and the lock are left out. */
  def files(): String = {
    val sizes = filesIn(from).filterNot(_.getPath.getName.startsWith(".")).map { file =>
      from.toUri.relativize(file.getPath.toUri).getPath -> file.getLen
    }
    compact(render(decompose(sizes.toMap)(DefaultFormats)))
  }

  /** Whether the target folder has any file. */
  def hasTarget(): Boolean = filesIn(to).hasNext

  /** Copies one of the [[files]]. */
  def copy(file: String): Unit = file match {
    case OperatorMetadata(query) =>
      val here = Regex.quoteReplacement(s"\"$to/$query/")
      writeText(file, SchemaPath.replaceAllIn(readText(file), here + "$1"))
    case _ =>
      val (path, copied) = (new Path(from, file), new Path(to, file))
      FileUtil.copy(
        path.getFileSystem(hadoop), path, copied.getFileSystem(hadoop), copied,
        /* deleteSource = */ false, /* overwrite = */ false, hadoop)
  }

  private def filesIn(folder: Path): Iterator[FileStatus] = {
    val system = folder.getFileSystem(hadoop)
    if (!system.exists(folder)) Iterator.empty
    else {
      val found = system.listFiles(folder, true)
      Iterator.continually(found).takeWhile(_.hasNext).map(_.next())
    }
  }

  private def readText(file: String): String =
    Using.resource(readers.open(new Path(from, file)))(in => new String(in.readAllBytes(), UTF_8))

  private def writeText(file: String, text: String): Unit = {
    val path = new Path(to, file)
    writers.mkdirs(path.getParent)
    val out = writers.createAtomic(path, overwriteIfPossible = false)
    out.write(text.getBytes(UTF_8))
    out.close()
  }

  private def qualified(folder: String): Path = {
    val path = new Path(folder)
    path.getFileSystem(hadoop).makeQualified(path)
  }
}

private object CheckpointCopy {
  private val OperatorMetadata = raw"([^/]+)/state/\d+/_metadata/.*".r
  private val SchemaPath = "\"[^\"]*/(state/\\d+/_stateSchema/)".r
}
