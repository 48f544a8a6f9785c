package org.apache.spark.sql.rejoin.functions

import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** Functions of Flink that Spark does not have, or computes otherwise: Spark's own, and these by `rejoin_` names.
  *
  * Each is a call of a static method. A NULL argument makes a NULL result without the call.
  */
object FlinkFunctions {
  private final val Prefix = "rejoin_"
  private val strings = ArrayType(StringType)

  /** By name: the object that has a method of that name, and the type of its result. */
  private val functions: Seq[(String, Class[_], DataType)] =
    Seq("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "toDegrees", "toRadians")
      .map((_, classOf[Math], DoubleType)) ++
      Seq("cot", "log", "log2").map((_, Numbers.getClass, DoubleType)) ++
      Seq(
        ("truncateDouble", Numbers.getClass, DoubleType),
        ("truncateFloat", Numbers.getClass, FloatType),
        ("truncateLong", Numbers.getClass, LongType),
        ("bin", Numbers.getClass, StringType),
        ("hexOfNumber", Numbers.getClass, StringType),
        ("inetAton", Numbers.getClass, LongType),
        ("inetNtoa", Numbers.getClass, StringType),
        ("monthsBetween", Times.getClass, IntegerType),
        ("floorTime", Times.getClass, TimestampNTZType),
        ("ceilTime", Times.getClass, TimestampNTZType),
        ("convertTz", Times.getClass, StringType),
        ("ascii", Texts.getClass, IntegerType),
        ("chr", Texts.getClass, StringType),
        ("initcap", Texts.getClass, StringType),
        ("overlay", Texts.getClass, StringType),
        ("replace", Texts.getClass, StringType),
        ("trimBoth", Texts.getClass, StringType),
        ("translate", Texts.getClass, StringType),
        ("fromBase64", Texts.getClass, StringType),
        ("unhex", Texts.getClass, BinaryType),
        ("urlEncode", Texts.getClass, StringType),
        ("urlDecode", Texts.getClass, StringType),
        ("encode", Texts.getClass, BinaryType),
        ("decode", Texts.getClass, StringType),
        ("digest", Texts.getClass, StringType),
        ("split", Texts.getClass, strings),
        ("strToMap", Texts.getClass, MapType(StringType, StringType)),
        ("parseUrl", Texts.getClass, StringType),
        ("isAlpha", Texts.getClass, BooleanType),
        ("isDigit", Texts.getClass, BooleanType),
        ("isDecimal", Texts.getClass, BooleanType),
        ("similar", Regexps.getClass, BooleanType),
        ("regexpCount", Regexps.getClass, IntegerType),
        ("regexpInstr", Regexps.getClass, IntegerType),
        ("regexpSubstr", Regexps.getClass, StringType),
        ("regexpExtractAll", Regexps.getClass, strings),
        ("jsonString", JsonTexts.getClass, StringType),
        ("jsonQuote", JsonTexts.getClass, StringType),
        ("jsonUnquote", JsonTexts.getClass, StringType),
        ("jsonFormat", JsonTexts.getClass, StringType),
        ("isJson", JsonTexts.getClass, BooleanType),
        ("jsonValue", JsonTexts.getClass, StringType),
        ("jsonQuery", JsonTexts.getClass, StringType),
        ("jsonExists", JsonTexts.getClass, StringType))

  /** Spark's functions and these, as they are called in the texts of the planner. */
  val registry: FunctionRegistry = {
    val all = FunctionRegistry.builtin.clone()
    functions.foreach { case (name, of, result) => register(all, name, call(of, result, name)) }
    register(all, "unixTimestamp", arguments => call(Times.getClass, LongType, "unixTimestamp")(arguments :+ timeZone))
    all
  }

  private def call(of: Class[_], result: DataType, name: String)(arguments: Seq[Expression]): Expression =
    StaticInvoke(of, result, name, arguments)

  private def timeZone: Expression = Literal(SQLConf.get.sessionLocalTimeZone)

  private def register(registry: FunctionRegistry, name: String, builder: Seq[Expression] => Expression): Unit = {
    val full = Prefix + name
    val info = new ExpressionInfo(getClass.getName, full)
    registry.registerFunction(FunctionRegistry.builtinFunctionIdentifier(full), info, builder)
  }
}
