package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.classic.ExpressionUtils
import org.apache.spark.sql.types.IntegerType
import org.apache.spark.sql.{Column, functions}
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The number by which Spark knows a key group, in an exchange and in the state.
  *
  * Spark gives a row to the partition `hash(key) mod partitions`. With the group itself as the key, of two partitions
  * one has 74 of 128 groups, of 32 one has seven and another none. An even key is the number whose hash is the group:
  * any two of any number of partitions differ by one group at most.
  *
  * @param even
  *   false for checkpoints that were begun with the group as the key
  */
private[rejoin] final case class GroupKey(even: Boolean) {
  def of(group: Int): Int = if (even) GroupKey.hashedTo(group) else group

  def groupOf(key: Int): Int = if (even) GroupKey.hash(key) else key

  /** Of a column with groups. */
  def column(name: String): Column = {
    val group = functions.col(name)
    if (!even) group
    else
      ExpressionUtils.column(
        StaticInvoke(
          GroupKey.getClass,
          IntegerType,
          "hashedTo",
          Seq(ExpressionUtils.expression(group)),
          propagateNull = false,
          returnNullable = false)).as("groupKey")
  }
}

private[rejoin] object GroupKey {
  private final val Seed = 42 // of Spark's exchanges

  /** Spark's hash of a key, of which an exchange takes the remainder. */
  def hash(key: Int): Int = Murmur3_x86_32.hashInt(key, Seed)

  /** The only number with this hash: Murmur3 of an int, step by step backwards. */
  def hashedTo(hash: Int): Int = {
    var mixed = hash ^ (hash >>> 16)
    mixed *= Final2
    mixed ^= (mixed >>> 13) ^ (mixed >>> 26)
    mixed *= Final1
    mixed ^= mixed >>> 16
    mixed ^= Integer.BYTES
    val word = Integer.rotateRight((mixed - 0xe6546b64) * Five, 13) ^ Seed
    Integer.rotateRight(word * Word2, 15) * Word1
  }

  private val Word1 = inverse(0xcc9e2d51)
  private val Word2 = inverse(0x1b873593)
  private val Five = inverse(5)
  private val Final1 = inverse(0x85ebca6b)
  private val Final2 = inverse(0xc2b2ae35)

  /** Of an odd number, modulo two to the power of 32: each step of Newton's doubles the bits that are right. */
  private def inverse(odd: Int): Int = Iterator.iterate(odd)(x => x * (2 - odd * x)).drop(4).next()
}
