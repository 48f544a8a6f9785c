package org.apache.spark.sql.rejoin.functions

import java.net.{URI, URISyntaxException, URLDecoder, URLEncoder}
import java.nio.charset.{Charset, StandardCharsets}
import java.security.MessageDigest
import java.util.{Base64, HexFormat}
import java.util.regex.Pattern

import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, GenericArrayData, MapData}
import org.apache.spark.unsafe.types.UTF8String

/** Functions of texts with Flink's results. */
object Texts {
  private val hex = HexFormat.of

  /** The first byte; 0 of the empty text. */
  def ascii(text: UTF8String): Int = if (text.numBytes == 0) 0 else text.getByte(0).toInt

  def chr(code: Long): UTF8String =
    UTF8String.fromString(if (code < 0) "" else (code & 0xff).toChar.toString)

  /** Words are runs of ASCII letters and digits; other letters are left as they are. */
  def initcap(text: UTF8String): UTF8String = {
    val chars = text.toString.toCharArray
    var begins = true
    for (i <- chars.indices) {
      val char = chars(i)
      if (char < 128 && Character.isLetterOrDigit(char)) {
        chars(i) = if (begins) Character.toUpperCase(char) else Character.toLowerCase(char)
        begins = false
      } else begins = true
    }
    UTF8String.fromString(new String(chars))
  }

  /** A start outside of the text leaves it as it is. */
  def overlay(text: UTF8String, part: UTF8String, start: Int, length: Int): UTF8String = {
    val whole = text.toString
    if (start <= 0 || start > whole.length) text
    else {
      val rest = if (length > 0 && start + length <= whole.length) whole.substring(start - 1 + length) else ""
      UTF8String.fromString(whole.substring(0, start - 1) + part + rest)
    }
  }

  /** An empty `part` stands before, between and behind all characters. */
  def replace(text: UTF8String, part: UTF8String, by: UTF8String): UTF8String =
    UTF8String.fromString(text.toString.replace(part.toString, by.toString))

  def trimBoth(text: UTF8String, chars: UTF8String): UTF8String = text.trim(chars)

  /** Characters of `from` become those of `to`, or nothing where `to` is shorter; the first of equal ones counts. */
  def translate(text: UTF8String, from: UTF8String, to: UTF8String): UTF8String = {
    val targets = to.toString.codePoints.toArray
    val places = from.toString.codePoints.toArray.zipWithIndex.reverse.toMap
    val found = new java.lang.StringBuilder
    text.toString.codePoints.forEach { point =>
      places.get(point) match {
        case None => found.appendCodePoint(point)
        case Some(i) => if (i < targets.length) found.appendCodePoint(targets(i))
      }
    }
    UTF8String.fromString(found.toString)
  }

  def fromBase64(text: UTF8String): UTF8String = UTF8String.fromBytes(Base64.getDecoder.decode(text.getBytes))

  /** The bytes of an even or odd number of digits, NULL if one of them is none. */
  def unhex(text: UTF8String): Array[Byte] = {
    val digits = if (text.numBytes % 2 == 0) text.toString else s"0$text"
    try hex.parseHex(digits)
    catch { case _: IllegalArgumentException => null }
  }

  def urlEncode(text: UTF8String): UTF8String =
    UTF8String.fromString(URLEncoder.encode(text.toString, StandardCharsets.UTF_8))

  /** NULL if the text is not encoded well. */
  def urlDecode(text: UTF8String): UTF8String =
    try UTF8String.fromString(URLDecoder.decode(text.toString, StandardCharsets.UTF_8))
    catch { case _: IllegalArgumentException => null }

  def encode(text: UTF8String, charset: UTF8String): Array[Byte] =
    text.toString.getBytes(Charset.forName(charset.toString))

  def decode(bytes: Array[Byte], charset: UTF8String): UTF8String =
    UTF8String.fromString(new String(bytes, Charset.forName(charset.toString)))

  /** The hexadecimal hash; `algorithm` as Java names it. */
  def digest(text: UTF8String, algorithm: UTF8String): UTF8String =
    UTF8String.fromString(hex.formatHex(MessageDigest.getInstance(algorithm.toString).digest(text.getBytes)))

  /** The parts between separators; the characters of the text if the separator is empty. */
  def split(text: UTF8String, separator: UTF8String): ArrayData = {
    val parts =
      if (text.numBytes == 0) Array.empty[UTF8String]
      else if (separator.numBytes > 0)
        text.toString.split(Pattern.quote(separator.toString), -1).map(UTF8String.fromString)
      else Array.tabulate(text.numChars)(i => text.substring(i, i + 1))
    new GenericArrayData(parts.asInstanceOf[Array[Any]])
  }

  /** Both separators are regular expressions; a pair without the second has no value, the last of equal keys counts. */
  def strToMap(text: UTF8String, pairs: UTF8String, keyAndValue: UTF8String): MapData = {
    val found = new java.util.LinkedHashMap[UTF8String, UTF8String]
    for (pair <- text.toString.split(pairs.toString, -1) if text.numBytes > 0) {
      val parts = pair.split(keyAndValue.toString, 2)
      found.put(UTF8String.fromString(parts(0)), if (parts.length < 2) null else UTF8String.fromString(parts(1)))
    }
    ArrayBasedMapData(found, identity, identity)
  }

  /** A part of a URL; `key` names a parameter if the part is QUERY, and is empty otherwise. */
  def parseUrl(text: UTF8String, part: UTF8String, key: UTF8String): UTF8String = {
    val url =
      try new URI(text.toString)
      catch { case _: URISyntaxException => null }
    if (url == null || url.getScheme == null) null
    else {
      val found = part.toString match {
        case "HOST" => url.getHost
        case "PATH" => url.getRawPath
        case "QUERY" => url.getRawQuery
        case "REF" => url.getRawFragment
        case "PROTOCOL" => url.getScheme
        case "AUTHORITY" => url.getRawAuthority
        case "USERINFO" => url.getRawUserInfo
        case "FILE" => Seq(url.getRawPath, url.getRawQuery).filter(_ != null).mkString("?")
        case _ => null
      }
      if (key.numBytes == 0) UTF8String.fromString(found)
      else if (part.toString != "QUERY" || found == null) null
      else parameter(found, key.toString)
    }
  }

  private def parameter(query: String, key: String): UTF8String = {
    val found = Pattern.compile(s"(?:&|^)${Pattern.quote(key)}=([^&]*)").matcher(query)
    if (found.find()) UTF8String.fromString(found.group(1)) else null
  }

  def isAlpha(text: UTF8String): Boolean = all(text)(Character.isLetter)

  def isDigit(text: UTF8String): Boolean = all(text)(Character.isDigit)

  def isDecimal(text: UTF8String): Boolean =
    try {
      new java.math.BigDecimal(text.toString.trim)
      true
    } catch { case _: NumberFormatException => false }

  private def all(text: UTF8String)(test: Char => Boolean): Boolean = {
    val chars = text.toString
    chars.nonEmpty && chars.forall(test)
  }
}
