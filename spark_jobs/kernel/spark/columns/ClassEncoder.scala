package org.apache.spark.sql.rejoin.columns

import scala.reflect.ClassTag

import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders.{EncoderField, ProductEncoder}
import org.apache.spark.sql.types.Metadata

/** The encoder of a case class, as `Encoders.product` would find it: that one starts Scala's reflection, which takes a
  * second of a job's start.
  */
private[rejoin] object ClassEncoder {

  /** @param fields
    *   name and encoder of each parameter of the class, in their order
    */
  def apply[T <: Product: ClassTag](fields: (String, AgnosticEncoder[_])*): AgnosticEncoder[T] =
    ProductEncoder(
      implicitly[ClassTag[T]],
      fields.map { case (name, encoder) => EncoderField(name, encoder, encoder.nullable, Metadata.empty) },
      None)
}
