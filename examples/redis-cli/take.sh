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
# status, Redis time, what is in force, then reason (0 and 1: allowed), tokens left, ms until it could pass.
reply=$(${REDIS_CLI:-redis-cli} --raw FCALL flyball_take 3 "$base:params" "$base:b" "$own" '' '' 0 '10 20 0 -1 0' "$cost")
printf '%s\n' "$reply"
reason=$(printf '%s\n' "$reply" | sed -n 4p)
[ "$reason" = 0 ] || [ "$reason" = 1 ]
