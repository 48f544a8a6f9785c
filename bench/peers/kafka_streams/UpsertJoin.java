import java.io.ByteArrayOutputStream;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The workload `regular-upsert` in Kafka Streams: a left join of two tables on their common key.
 *
 * <p>Avro is read and written by hand for the few types there are, which costs less than the
 * generic records of a registry's serdes. The program ends once the offsets that it has committed
 * are those that the topics ended with when it started. Usage: UpsertJoin FILE, with the settings
 * of Kafka Streams and, as `bench.*`, topics and schema ids.
 */
public final class UpsertJoin {
  record Order(double amount, String note, long placedAt) {}

  record Shipment(String carrier, int weight) {}

  record Shipped(Order order, Shipment shipment) {}

  public static void main(String[] arguments) throws Exception {
    Properties given = new Properties();
    try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
      given.load(file);
    }
    Map<TopicPartition, Long> ends;
    try (Admin admin = Admin.create(given);
        KafkaStreams streams = new KafkaStreams(topology(given).build(given), given)) {
      ends = ends(admin, List.of(topic(given, "left"), topic(given, "right")));
      streams.setUncaughtExceptionHandler(
          failure -> {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
          });
      streams.start();
      String group = given.getProperty(StreamsConfig.APPLICATION_ID_CONFIG);
      while (!committed(admin, group, ends)) {
        Thread.sleep(100);
      }
      streams.close(Duration.ofSeconds(30));
    }
  }

  private static StreamsBuilder topology(Properties given) {
    StreamsBuilder builder = new StreamsBuilder();
    KTable<Long, Order> orders = table(builder, given, "left", UpsertJoin::order, UpsertJoin::put);
    KTable<Long, Shipment> shipments =
        table(builder, given, "right", UpsertJoin::shipment, UpsertJoin::put);
    // a result repeats its key, so it carries it until it is written
    orders
        .leftJoin(shipments, Shipped::new)
        .toStream()
        .mapValues((id, row) -> row == null ? null : new Object[] {id, row})
        .to(
            topic(given, "sink"),
            Produced.with(keys(id(given, "sink.key")), results(id(given, "sink.value"))));
    return builder;
  }

  private static <V> KTable<Long, V> table(
      StreamsBuilder builder,
      Properties given,
      String side,
      Function<ByteBuffer, V> read,
      BiConsumer<Out, V> write) {
    Serde<Long> keys = keys(id(given, side + ".key"));
    int schema = id(given, side + ".value");
    Serde<V> rows =
        Serdes.serdeFrom(
            (topic, row) -> row == null ? null : framed(schema, 0L, out -> write.accept(out, row)),
            (topic, bytes) -> {
              if (bytes == null) {
                return null;
              }
              ByteBuffer in = behindFrame(bytes);
              getLong(in); // the key again
              return read.apply(in);
            });
    return builder.table(
        topic(given, side),
        Consumed.with(keys, rows),
        Materialized.<Long, V, KeyValueStore<Bytes, byte[]>>as(side)
            .withKeySerde(keys)
            .withValueSerde(rows)
            .withCachingEnabled());
  }

  private static Order order(ByteBuffer in) {
    return new Order(in.getDouble(), getString(in), getLong(in));
  }

  private static void put(Out out, Order order) {
    out.putDouble(order.amount());
    out.putString(order.note());
    out.putLong(order.placedAt());
  }

  private static Shipment shipment(ByteBuffer in) {
    return new Shipment(getString(in), (int) getLong(in));
  }

  private static void put(Out out, Shipment shipment) {
    out.putString(shipment.carrier());
    out.putLong(shipment.weight());
  }

  private static Serde<Long> keys(int schema) {
    return Serdes.serdeFrom(
        (topic, key) -> key == null ? null : framed(schema, key, out -> {}),
        (topic, bytes) -> bytes == null ? null : getLong(behindFrame(bytes)));
  }

  private static Serde<Object[]> results(int schema) {
    return Serdes.serdeFrom(
        (topic, row) -> row == null ? null : framed(schema, (Long) row[0], out -> put(out, row)),
        (topic, bytes) -> {
          throw new UnsupportedOperationException("results are only written");
        });
  }

  private static void put(Out out, Object[] keyed) {
    Shipped row = (Shipped) keyed[1];
    put(out, row.order());
    out.putLong(row.shipment() == null ? 0 : 1); // each column is a union with null
    if (row.shipment() == null) {
      out.putLong(0);
    } else {
      out.putString(row.shipment().carrier());
      out.putLong(1);
      out.putLong(row.shipment().weight());
    }
  }

  private static byte[] framed(int schema, long key, java.util.function.Consumer<Out> rest) {
    Out out = new Out();
    out.write(0);
    out.writeBytes(ByteBuffer.allocate(4).putInt(schema).array());
    out.putLong(key);
    rest.accept(out);
    return out.toByteArray();
  }

  private static ByteBuffer behindFrame(byte[] bytes) {
    return ByteBuffer.wrap(bytes).position(5).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static long getLong(ByteBuffer in) {
    long zigzag = 0;
    for (int shift = 0; ; shift += 7) {
      byte part = in.get();
      zigzag |= (part & 0x7FL) << shift;
      if (part >= 0) {
        return zigzag >>> 1 ^ -(zigzag & 1);
      }
    }
  }

  private static String getString(ByteBuffer in) {
    byte[] text = new byte[(int) getLong(in)];
    in.get(text);
    return new String(text, StandardCharsets.UTF_8);
  }

  /** Avro's binary encoding. */
  static final class Out extends ByteArrayOutputStream {
    Out() {
      super(96);
    }

    void putLong(long number) {
      long rest = number << 1 ^ number >> 63;
      while ((rest & ~0x7FL) != 0) {
        write((int) (rest & 0x7F | 0x80));
        rest >>>= 7;
      }
      write((int) rest);
    }

    void putDouble(double number) {
      writeBytes(
          ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(number).array());
    }

    void putString(String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      putLong(bytes.length);
      writeBytes(bytes);
    }
  }

  private static Map<TopicPartition, Long> ends(Admin admin, List<String> topics)
      throws Exception {
    Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
    admin
        .describeTopics(topics)
        .allTopicNames()
        .get()
        .forEach(
            (topic, found) ->
                found
                    .partitions()
                    .forEach(
                        part ->
                            asked.put(
                                new TopicPartition(topic, part.partition()),
                                OffsetSpec.latest())));
    Map<TopicPartition, Long> ends = new HashMap<>();
    admin.listOffsets(asked).all().get().forEach((part, info) -> ends.put(part, info.offset()));
    return ends;
  }

  private static boolean committed(Admin admin, String group, Map<TopicPartition, Long> ends)
      throws Exception {
    Map<TopicPartition, ?> found;
    try {
      found = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    } catch (java.util.concurrent.ExecutionException absent) {
      if (absent.getCause() instanceof org.apache.kafka.common.errors.ApiException) {
        return false; // the group does not exist yet, or its coordinator is not known yet
      }
      throw absent;
    }
    return ends.entrySet().stream()
        .allMatch(
            end ->
                found.get(end.getKey())
                        instanceof org.apache.kafka.clients.consumer.OffsetAndMetadata at
                    && at.offset() >= end.getValue());
  }

  private static String topic(Properties given, String side) {
    return given.getProperty("bench." + side + ".topic");
  }

  private static int id(Properties given, String part) {
    return Integer.parseInt(given.getProperty("bench." + part + ".id"));
  }

  private UpsertJoin() {}
}
