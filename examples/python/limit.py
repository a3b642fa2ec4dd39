"""Limit by Flyball from Python: one FCALL decides. Needs redis-py, and the library: `flyball functions load`.

Usage: FLYBALL_REDIS_URL=redis://localhost:6379 python3 limit.py checkout user:42 [cost]
"""

import base64
import hashlib
import os
import re
import sys

import redis

REASONS = [
    "ok", "off", "rate", "subject", "breaker_open",
    "probe_budget", "reserve", "cost_exceeds_capacity", "bad_cost", "blocked", "exempt",
]
ADMITTED = ("ok", "off", "exempt")
# Only for a limiter that has no params in Redis: rate capacity inFlightMax subjectRate subjectCapacity.
FALLBACK = "10 20 0 -1 0"


def encode(subject):
    """A subject as a part of a key, as docs/contract.md lays it down."""
    raw = subject.encode()
    text = re.sub(rb"[^A-Za-z0-9._:@-]", lambda m: b"%%%02X" % m.group()[0], raw).decode()
    if len(text) <= 64:
        return text
    return "#" + base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()


class Limiter:
    """A limiter by name. Its group, if it has one, is in the registry."""

    def __init__(self, client, name, prefix="flyball"):
        group = client.hget(f"{prefix}:limiters", name)
        self.base = f"{prefix}:{name}{{{group}}}" if group else f"{prefix}:{{{name}}}"
        self.client = client
        self.shadow = "0"
        # Something is known of single subjects: another function decides.
        self.rules = False

    def take(self, subject=None, cost="1", priority=""):
        """Returns what was decided. A cost is a plain decimal with at most 6 decimals."""
        for _ in range(3):
            bucket = f"{self.base}:s:b" if self.shadow == "1" else f"{self.base}:b"
            own = bucket if subject is None else f"{bucket}:{encode(subject)}"
            keys = [f"{self.base}:params", bucket, own]
            # No time, no latest time to charge: Redis's own clock, and the call is waited for.
            wish = f"{cost} {priority}".strip()
            function, shadow = "flyball_take", self.shadow
            if self.rules:
                half = f"{self.base}:s" if self.shadow == "1" else self.base
                stands = bucket if subject is None else f"{self.base}:ts:{encode(subject)}"
                beside = [f"{half}:owed", f"{self.base}:o", f"{half}:x:b", f"{bucket}:#"]
                keys = [*keys[:2], *beside, own, stands]
                function, shadow = "flyball_subjects", "5" if self.shadow == "1" else "4"
            args = ["", "", shadow, FALLBACK, wish]
            reply = self.client.execute_command("FCALL", function, len(keys), *keys, *args)
            if reply[0] == 2:
                # The mode wants the other buckets; nothing was charged.
                self.shadow = "0" if self.shadow == "1" else "1"
            elif reply[0] == 3:
                # The other function decides; nothing was charged.
                self.rules = not self.rules
            else:
                break
        _status, _now, in_force, code, remaining, retry = reply
        # 32 is added where a bucket that newcomers share stood in for the subject's own.
        reason = REASONS[code % 32]
        return {
            "allowed": reason in ADMITTED or self.shadow == "1",
            "reason": reason,
            "remaining": remaining,
            "retryAfterMs": None if retry < 0 else retry,
            "revision": int(in_force.split(" ")[2]),
        }


def main():
    name, subject, *cost = sys.argv[1:]
    url = os.environ.get("FLYBALL_REDIS_URL", "redis://localhost:6379")
    client = redis.Redis.from_url(url, decode_responses=True, socket_timeout=1)
    decision = Limiter(client, name).take(subject, *cost)
    print(" ".join(f"{key}={value}" for key, value in decision.items()))
    return 0 if decision["allowed"] else 1


if __name__ == "__main__":
    sys.exit(main())
