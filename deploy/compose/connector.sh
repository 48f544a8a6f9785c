#!/bin/sh
# Gives Connect the connector, then restarts whatever of it has failed. Connect leaves that to others:
# a task that did not find the broker at its start would stay away for good.
set -u
connector=http://connect:8083/connectors/shop

until answer=$(curl -sS --fail-with-body -X PUT -H 'Content-Type: application/json' \
  --data @/connector.json "$connector/config"); do
  echo "Connect does not take the connector, trying again: $answer"
  sleep 2
done
echo "Connect has the connector"

while sleep 5; do
  if curl -s "$connector/status" | grep -q '"state":"FAILED"'; then
    echo "the connector or its task has failed and is restarted"
    curl -sS -o /dev/null -X POST "$connector/restart?includeTasks=true&onlyFailed=true"
  fi
done
