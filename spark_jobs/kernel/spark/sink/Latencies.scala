package org.apache.spark.sql.rejoin.sink

import java.util

import rejoin.core.row.Envelope

/** How long after the newest record behind it each result of an epoch is committed, in one writer.
  *
  * The commit comes last. Until then the ages of the records are counted as of the epoch's begin, in buckets a
  * sixteenth of their age wide; what the epoch took is added to all of them. So a result costs one addition, and
  * a latency is known to within a thirty-second of it.
  */
private[rejoin] final class Latencies {
  private val ages = new Array[Long](Latencies.AgeBuckets)
  private var begunMs = 0L

  def start(nowMs: Long): Unit = {
    begunMs = nowMs
    util.Arrays.fill(ages, 0L)
  }

  /** A result; without a known record it is not counted. */
  def add(recordMs: Long): Unit = addAt(recordMs, begunMs)

  /** A result that Kafka has at this moment; the end of the epoch adds nothing to it. */
  def addAt(recordMs: Long, nowMs: Long): Unit =
    if (recordMs != Envelope.NoTime) ages(Latencies.bucketOf(math.max(nowMs - recordMs, 0L))) += 1

  /** Counts the results that were committed at this moment, as [[count]] does. */
  def commit(nowMs: Long, count: (String, Long, Long) => Unit): Unit =
    this.count(math.max(nowMs - begunMs, 0L), count)

  /** Counts the results by the bound that their latency does not exceed: bound, number, sum of the latencies.
    *
    * @param tookMs
    *   what is added to the age of each
    */
  def count(tookMs: Long, count: (String, Long, Long) => Unit): Unit = {
    val found = ages.indices.filter(ages(_) > 0).map(i => (Latencies.middleOf(i) + tookMs, ages(i)))
    found.groupBy { case (latencyMs, _) => Latencies.boundOf(latencyMs) }.foreach { case (bound, results) =>
      count(bound, results.map(_._2).sum, results.map { case (latencyMs, n) => latencyMs * n }.sum)
    }
  }
}

private[rejoin] object Latencies {

  /** Upper bounds of the histogram in milliseconds, as `LATENCY_BOUNDS_MS` in spark_jobs/status.py has them. */
  val BoundsMs: Seq[Long] =
    Seq(10L, 100L, 1000L, 10000L).flatMap(ms => Seq(ms, ms * 3 / 2, ms * 5 / 2, ms * 4, ms * 6)) ++
      Seq(100000L, 300000L, 1000000L, 3600000L)
  final val Beyond = "+Inf"

  private final val AgeBuckets = 640 // enough for timestamps since 1970

  def boundOf(latencyMs: Long): String = BoundsMs.find(latencyMs <= _).fold(Beyond)(_.toString)

  /** Ages below 32 have buckets of their own; from there on, sixteen to each doubling. */
  private def bucketOf(ageMs: Long): Int =
    if (ageMs < 16) ageMs.toInt
    else {
      val exponent = 63 - java.lang.Long.numberOfLeadingZeros(ageMs)
      math.min((exponent - 3) * 16 + (ageMs >>> (exponent - 4)).toInt - 16, AgeBuckets - 1)
    }

  private def middleOf(bucket: Int): Long =
    if (bucket < 16) bucket.toLong
    else {
      val width = 1L << (bucket / 16 - 1)
      (16 + bucket % 16) * width + width / 2
    }
}
