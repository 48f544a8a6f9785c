#!/bin/bash
# A new data folder: initdb, the database, the scripts; then the server, as the user postgres.
set -euo pipefail

[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  chown postgres:postgres "$PGDATA"
  exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb -U postgres --encoding UTF8 --locale C.UTF-8 --pwfile "$POSTGRES_PASSWORD_FILE" \
    --auth-local trust --auth-host trust > /dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
  # with the settings of the command, as the image does it: commit times are kept from the first row on
  pg_ctl -w -o "${*:2} -c listen_addresses='' -k /tmp" start > /dev/null
  psql -q -h /tmp -U postgres -c "CREATE DATABASE $POSTGRES_DB"
  for script in /docker-entrypoint-initdb.d/*.sql; do
    psql -q -v ON_ERROR_STOP=1 -h /tmp -U postgres -d "$POSTGRES_DB" -f "$script"
  done
  pg_ctl -w -m fast stop > /dev/null
fi
exec "$@"
