-- note: appends a note to the audit log: a refusal, a recommendation, drift. Changes nothing else, needs no lease.
-- KEYS:
--   audit       the audit stream
--   params      the params hash
-- ARGV:
--   prev        hash of the audit entry before this one
--   hash        hash of this audit entry
--   body        this audit entry, canonical JSON
-- RETURNS: ['ok', streamId] or ['refused', 'head', head]
-- TIME: never
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/head.lua
local prev, hash, body = ARGV[1], ARGV[2], ARGV[3]
local head = audit_head(KEYS[1])
if prev ~= head then return { 'refused', 'head', head } end
local at = redis.call('HMGET', KEYS[2], 'epoch', 'revision')
return { 'ok', append(KEYS[1], 'note', count(at[1]) or 0, count(at[2]) or 0, hash, prev, body) }
