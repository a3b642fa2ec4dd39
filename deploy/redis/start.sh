#!/bin/sh
# Become redis-server with the users of users.acl, their passwords read from files (Docker secrets): only hashes are
# written, into a folder in memory. Arguments are handed on to redis-server.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
secrets=${SECRETS_DIR:-/run/secrets}
run=${RUN_DIR:-/run/flyball}

hash_of() {
  [ -s "$secrets/$1" ] || { echo "start.sh: $secrets/$1 is missing or empty: put the password of this user there." >&2; exit 78; }
  # The line break that an editor adds is no part of the password.
  printf %s "$(cat "$secrets/$1")" | sha256sum | cut -d' ' -f1
}
service=$(hash_of flyball_service_password)
daemon=$(hash_of flyball_daemon_password)

umask 077
mkdir -p "$run"
sed -e "s/@SERVICE_PASSWORD_SHA256@/$service/" -e "s/@DAEMON_PASSWORD_SHA256@/$daemon/" "$here/users.acl" >"$run/users.acl"
exec redis-server "$here/redis.conf" --aclfile "$run/users.acl" "$@"
