package org.apache.spark.sql.rejoin.format.avro

import java.util

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.avro.Schema
import org.apache.avro.Schema.Type._

import org.apache.spark.sql.catalyst.InternalRow

/** The steps that skip Avro data which the query does not need. */
private[rejoin] object AvroSkips {
  def of(schema: Schema): AvroField = new Builder().of(schema)

  /** Merges neighbouring skips of fixed size into one. */
  def merge(steps: Seq[(AvroField, Int)]): Seq[(AvroField, Int)] = {
    val merged = new ArrayBuffer[(AvroField, Int)]
    steps.foreach {
      case (Bytes(n), _) if merged.lastOption.exists(_._1.isInstanceOf[Bytes]) =>
        val Bytes(before) = merged.last._1: @unchecked
        merged(merged.size - 1) = (Bytes(before + n), -1)
      case step => merged += step
    }
    merged.toSeq
  }

  /** Compiles a schema; the step of a record that contains itself also contains itself. */
  private final class Builder {
    private val records = new util.IdentityHashMap[Schema, Sequence]

    def of(schema: Schema): AvroField = schema.getType match {
      case NULL => Bytes(0)
      case BOOLEAN => Bytes(1)
      case INT | LONG | ENUM => Number
      case FLOAT => Bytes(4)
      case DOUBLE => Bytes(8)
      case FIXED => Bytes(schema.getFixedSize)
      case STRING | BYTES => Sized
      case UNION => new AvroFields.Union(schema.getTypes.asScala.map(of).toArray)
      case ARRAY => new Blocks(of(schema.getElementType), isMap = false)
      case MAP => new Blocks(of(schema.getValueType), isMap = true)
      case RECORD => record(schema)
    }

    private def record(schema: Schema): Sequence = {
      val known = records.get(schema)
      if (known != null) known
      else {
        val sequence = new Sequence
        records.put(schema, sequence)
        val fields = schema.getFields.asScala.toSeq.map(f => of(f.schema) -> -1)
        sequence.steps = merge(fields).map(_._1).toArray
        sequence
      }
    }
  }

  private final case class Bytes(size: Int) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = in.advance(size)
  }

  private val Number: AvroField = (in, _, _) => in.long()

  private val Sized: AvroField = (in, _, _) => in.advance(in.length())

  private final class Sequence extends AvroField {
    var steps: Array[AvroField] = _

    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit = {
      in.enter()
      var i = 0
      while (i < steps.length) {
        steps(i).read(in, row, ordinal)
        i += 1
      }
      in.leave()
    }
  }

  private final class Blocks(item: AvroField, isMap: Boolean) extends AvroField {
    def read(in: AvroInput, row: InternalRow, ordinal: Int): Unit =
      AvroFields.foreachItem(in) { () =>
        if (isMap) in.advance(in.length())
        item.read(in, row, ordinal)
      }
  }
}
