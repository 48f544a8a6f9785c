package org.apache.spark.sql.rejoin.run

import java.nio.file.{Files, Path}
import java.util.regex.Matcher

import scala.util.matching.Regex

/** A `${env:...}` or `${file:...}` that names nothing. */
final class ReferenceException(message: String) extends IllegalArgumentException(message)

/** Replaces references to secrets, `${env:NAME}` and `${file:PATH}`, in the options of clients.
  *
  * Plans, logs and specs hold the reference; the secret is read only where a client is made.
  * spark_jobs/settings.py does the same for the clients in Python.
  */
object References {
  private val Reference = """\$\{(env|file):([^}]*)\}""".r
  private val Jaas = "sasl.jaas.config"

  def resolve(text: String): String = replace(text, identity)

  /** An option's value; what stands within the quotes of a JAAS entry is escaped for them. */
  def resolve(name: String, value: String): String =
    if (name.endsWith(Jaas) && Reference.pattern.matcher(value).replaceAll("").nonEmpty)
      replace(value, _.replace("\\", "\\\\").replace("\"", "\\\""))
    else resolve(value)

  def resolveAll(options: Map[String, String]): Map[String, String] =
    options.map { case (name, value) => name -> resolve(name, value) }

  private def replace(text: String, quoted: String => String): String =
    Reference.replaceAllIn(text, (found: Regex.Match) => Matcher.quoteReplacement(quoted(lookUp(found))))

  private def lookUp(found: Regex.Match): String = {
    val name = found.group(2)
    if (found.group(1) == "env")
      Option(System.getenv(name))
        .getOrElse(throw new ReferenceException(s"environment variable $name is not set"))
    else
      try Files.readString(Path.of(name)).strip()
      catch { case e: java.io.IOException => throw new ReferenceException(s"cannot read $name: $e") }
  }
}
