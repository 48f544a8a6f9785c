package rejoin.core.row

import java.util.Arrays

/** A byte array that compares by content. */
final class Bytes private (val bytes: Array[Byte]) {
  override val hashCode: Int = Arrays.hashCode(bytes)
  override def equals(other: Any): Boolean = other match {
    case that: Bytes => Arrays.equals(bytes, that.bytes)
    case _ => false
  }
}

object Bytes {
  def apply(bytes: Array[Byte]): Bytes = new Bytes(bytes)
}
