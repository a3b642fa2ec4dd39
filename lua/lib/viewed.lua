-- viewed: the same names as `packed` has, of params that were read and computed.
local v = view_of(p, now)
code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text
clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs
reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable
subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity
open_until, probe_rate = v.openUntil, v.probeRate
floor, subject_floor = v.floor, v.subjectFloor
