"""Orders with the names of their users, in a notebook or a PySpark shell."""

# %% [markdown]
# A broker for this: `rejoin kafka --port 9092 --data-dir /tmp/kafka`. Each `# %%` is a cell.

# %%
import json

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.functions import coalesce, col, lit

import rejoin

SERVERS = "localhost:9092"
TOPICS = ["notebook_orders", "notebook_users", "notebook_named"]

# %% A session that has the kernel and the connector; one of your own needs `rejoin.session_conf()`.
spark = rejoin.session("notebook", {"spark.master": "local[2]"})

# %% Topics as changelogs: columns as in CREATE TABLE, options as in WITH.
job = rejoin.Job("notebook")
source = {"properties.bootstrap.servers": SERVERS, "scan.startup.mode": "earliest-offset"}
orders = job.create_table(
    "orders",
    "id INT, user_id INT, amount DECIMAL(10, 2)",
    {"connector": "kafka", "topic": TOPICS[0], "format": "json", **source},
)
users = job.create_table(
    "users",
    "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
    {
        "connector": "upsert-kafka",
        "topic": TOPICS[1],
        "properties.bootstrap.servers": SERVERS,
        "key.format": "json",
        "value.format": "json",
    },
)
job.create_table(
    "named",
    "order_id INT, name STRING, amount DECIMAL(10, 2)",
    {
        "connector": "kafka",
        "topic": TOPICS[2],
        "properties.bootstrap.servers": SERVERS,
        "format": "changelog-json",
    },
)

# %% The join, in PySpark's expressions. A name that does not exist is an error here, not later.
o, u = orders.alias("o"), users.alias("u")
joined = rejoin.regular_join(o, u, on=o["user_id"] == u["id"], how="left")
joined.select(
    col("o.id").alias("order_id"), coalesce(u["name"], lit("?")).alias("name"), "o.amount"
).insert_into("named")
print(job.text)  # the job file that `rejoin run` takes
print(job.explain())  # what it will do, and keep

# %% Topics, and a first order whose user is not known.
admin = AdminClient({"bootstrap.servers": SERVERS})
for created in admin.create_topics([NewTopic(topic, 1) for topic in TOPICS]).values():
    created.result(30)
producer = Producer({"bootstrap.servers": SERVERS})
producer.produce(TOPICS[0], json.dumps({"id": 1, "user_id": 7, "amount": 12.5}))
producer.flush(30)

# %% Start. The session goes on being yours; `running` shows how the job is.
running = job.start(spark)
print(running)

# %% The result as a read_committed subscriber sees it.
consumer = Consumer(
    {"bootstrap.servers": SERVERS, "group.id": "notebook", "isolation.level": "read_committed"}
)
consumer.assign([TopicPartition(TOPICS[2], 0, 0)])


def changes(count: int) -> list[tuple[str, str]]:
    """The next changes of the result."""
    found = []
    while len(found) < count and running.is_active:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            change = json.loads(message.value())
            found.append((change["op"], change["data"]["name"]))
    return found


first = changes(1)
print(first)  # [('+I', '?')]

# %% The user comes: the row without a name is retracted.
producer.produce(TOPICS[1], json.dumps({"id": 7, "name": "Ada"}), json.dumps({"id": 7}))
producer.flush(30)
corrected = changes(2)
print(corrected)  # [('-D', '?'), ('+I', 'Ada')]

# %% Stop after the running epoch; the next `job.start` goes on from the checkpoint.
running.stop()
running.await_termination()  # raises what the job died of, if it did
