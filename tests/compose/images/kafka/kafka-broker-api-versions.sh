#!/bin/bash
exec "$(dirname "$0")/kafka-run.sh" org.apache.kafka.tools.BrokerApiVersionsCommand "$@"
