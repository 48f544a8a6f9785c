package org.apache.spark.sql.rejoin.format

/** A format and its options, defaults included, without the format's name as prefix. */
final case class FormatSpec(name: String, options: Map[String, String]) {
  def flag(option: String): Boolean = options.get(option).exists(_.equalsIgnoreCase("true"))

  /** Leaves out the options, which may hold credentials: Spark shows plans. */
  override def toString: String = name
}
