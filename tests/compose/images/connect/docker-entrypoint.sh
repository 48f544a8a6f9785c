#!/bin/bash
# A distributed worker: CONNECT_... become properties, the converters join each connector's folder.
set -euo pipefail
properties=/kafka/config/connect-distributed.properties

export CONNECT_BOOTSTRAP_SERVERS=$BOOTSTRAP_SERVERS CONNECT_GROUP_ID=$GROUP_ID \
  CONNECT_CONFIG_STORAGE_TOPIC=$CONFIG_STORAGE_TOPIC CONNECT_OFFSET_STORAGE_TOPIC=$OFFSET_STORAGE_TOPIC \
  CONNECT_STATUS_STORAGE_TOPIC=$STATUS_STORAGE_TOPIC CONNECT_PLUGIN_PATH=/kafka/connect \
  CONNECT_KEY_CONVERTER=${KEY_CONVERTER:-org.apache.kafka.connect.json.JsonConverter} \
  CONNECT_VALUE_CONVERTER=${VALUE_CONVERTER:-org.apache.kafka.connect.json.JsonConverter} \
  CONNECT_OFFSET_FLUSH_INTERVAL_MS=${OFFSET_FLUSH_INTERVAL_MS:-60000}
: > "$properties"
for topic in config offset status; do
  echo "$topic.storage.replication.factor=1" >> "$properties"
done
env | grep '^CONNECT_' | while IFS='=' read -r name value; do
  echo "$(echo "${name#CONNECT_}" | tr '[:upper:]_' '[:lower:].')=$value" >> "$properties"
done
if [ "${ENABLE_APICURIO_CONVERTERS:-false}" = true ]; then
  for plugin in /kafka/connect/*/; do
    ln -snf /kafka/external_libs/apicurio/* "$plugin"
  done
fi
exec java ${HEAP_OPTS:--Xmx512m} -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
  -cp "/kafka/libs/*" org.apache.kafka.connect.cli.ConnectDistributed "$properties"
