#!/bin/sh
# One take of a limiter by redis-cli alone: prints the reply, exits 1 on a denial. Needs `flyball functions load`.
# Usage: take.sh checkout [user:42] [cost]; extra options for redis-cli in REDIS_CLI, as in REDIS_CLI='redis-cli -p 7000'.
# For limiters without a group, in modes other than shadow, and subjects of A-Z a-z 0-9 . _ : @ - up to 64 characters.
set -eu
name=$1
subject=${2:-}
cost=${3:-1}
base="flyball:{$name}"
own="$base:b${subject:+:$subject}"
fallback='10 20 0 -1 0'
call="${REDIS_CLI:-redis-cli} --raw FCALL"
# status, Redis time, what is in force, then reason (0, 1 and 10: allowed), tokens left, ms until it could pass.
reply=$($call flyball_take 3 "$base:params" "$base:b" "$own" '' '' 0 "$fallback" "$cost")
if [ "$(printf '%s\n' "$reply" | sed -n 1p)" = 3 ]; then
  # Something is known of single subjects: another function decides, and nothing was charged.
  stands="$base:b"
  [ -z "$subject" ] || stands="$base:ts:$subject"
  reply=$($call flyball_subjects 8 "$base:params" "$base:b" "$base:owed" "$base:o" "$base:x:b" "$base:b:#" \
    "$own" "$stands" '' '' 4 "$fallback" "$cost")
fi
printf '%s\n' "$reply"
reason=$(printf '%s\n' "$reply" | sed -n 4p)
case $reason in 0 | 1 | 10 | 32) ;; *) exit 1 ;; esac
