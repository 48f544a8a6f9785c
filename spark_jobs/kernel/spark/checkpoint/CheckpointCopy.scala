package org.apache.spark.sql.rejoin.checkpoint

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using
import scala.util.matching.Regex

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FileUtil, Path}
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

  private val from = new Side(source)
  private val to = new Side(target)

  /** All files as JSON `{path below the folder: bytes}`; temporary ones and the lock are left out. */
  def files(): String = {
    val sizes = from.files.filterNot(_.getPath.getName.startsWith(".")).map { file =>
      from.folder.toUri.relativize(file.getPath.toUri).getPath -> file.getLen
    }
    compact(render(decompose(sizes.toMap)(DefaultFormats)))
  }

  /** Whether the target folder has any file. */
  def hasTarget(): Boolean = to.files.hasNext

  /** Copies one of the [[files]]. */
  def copy(file: String): Unit = file match {
    case OperatorMetadata(query) =>
      val here = Regex.quoteReplacement(s"\"${to.folder}/$query/")
      to.write(file, SchemaPath.replaceAllIn(from.read(file), here + "$1"))
    case _ =>
      val (path, copied) = (new Path(from.folder, file), new Path(to.folder, file))
      FileUtil.copy(
        from.system, path, to.system, copied, /* deleteSource = */ false, /* overwrite = */ false, to.hadoop)
  }
}

private object CheckpointCopy {

  /** A folder in its file system. */
  private final class Side(place: String) {
    val hadoop: Configuration = HadoopSettings.forFilesIn(place)
    val system: FileSystem = new Path(place).getFileSystem(hadoop)
    val folder: Path = system.makeQualified(new Path(place))
    private lazy val manager = CheckpointFileManager.create(folder, hadoop)

    def files: Iterator[FileStatus] =
      if (!system.exists(folder)) Iterator.empty
      else {
        val found = system.listFiles(folder, true)
        Iterator.continually(found).takeWhile(_.hasNext).map(_.next())
      }

    def read(file: String): String =
      Using.resource(manager.open(new Path(folder, file)))(in => new String(in.readAllBytes(), UTF_8))

    def write(file: String, text: String): Unit = {
      val path = new Path(folder, file)
      manager.mkdirs(path.getParent)
      val out = manager.createAtomic(path, overwriteIfPossible = false)
      out.write(text.getBytes(UTF_8))
      out.close()
    }
  }

  private val OperatorMetadata = raw"([^/]+)/state/\d+/_metadata/.*".r
  private val SchemaPath = "\"[^\"]*/(state/\\d+/_stateSchema/)".r
}
