package org.apache.spark.sql.rejoin.lookup

import java.time.Duration

import com.google.common.base.Ticker
import com.google.common.cache.{Cache, CacheBuilder}

import rejoin.core.row.Bytes

/** The answers that an executor keeps, by packed key; limits count keys and real time, as in Flink. */
final class LookupCache(spec: CacheSpec, ticker: Ticker = Ticker.systemTicker()) {
  private val cache: Cache[Bytes, Array[Byte]] = {
    val builder = CacheBuilder.newBuilder().ticker(ticker)
    spec.maxRows.foreach(builder.maximumSize)
    spec.expireAfterWriteMs.foreach(ms => builder.expireAfterWrite(Duration.ofMillis(ms)))
    spec.expireAfterAccessMs.foreach(ms => builder.expireAfterAccess(Duration.ofMillis(ms)))
    builder.build[Bytes, Array[Byte]]()
  }

  def get(key: Bytes): Option[Array[Byte]] = Option(cache.getIfPresent(key))

  /** Keeps an answer; an empty one says that the key has no row. */
  def put(key: Bytes, answer: Array[Byte]): Unit =
    if (answer.nonEmpty || spec.missingKeys) cache.put(key, answer)
}
