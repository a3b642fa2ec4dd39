-- note: appends a note to the audit log: a refusal, a recommendation, drift, a trim, which it carries out too.
-- Changes nothing else, needs no lease.
-- KEYS:
--   audit       the audit stream
--   params      the params hash
-- ARGV:
--   prev        hash of the audit entry before this one
--   hash        hash of this audit entry
--   body        this audit entry, canonical JSON
--   trim        empty, or the id of the newest entry that is trimmed, of which this note tells
--   trimHash    its hash
-- RETURNS: ['ok', streamId], or ['refused', 'head', head], or ['refused', 'trim', head] when that entry is not there
-- TIME: never
-- COMPLEXITY: O(1), and O(entries trimmed)
--- @include lib/number.lua
--- @include lib/head.lua

local function holds(key, id, wanted)
  if not string.match(id, '^%d+%-%d+$') then return false end
  local entry = redis.call('XRANGE', key, id, id)[1]
  if not entry then return false end
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'hash' then return entry[2][i + 1] == wanted end
  end
  return false
end

local prev, hash, body = ARGV[1], ARGV[2], ARGV[3]
local through, through_hash = ARGV[4], ARGV[5]
local head = audit_head(KEYS[1])
if prev ~= head then return { 'refused', 'head', head } end
if through ~= '' and not holds(KEYS[1], through, through_hash) then return { 'refused', 'trim', head } end
local at = redis.call('HMGET', KEYS[2], 'epoch', 'revision')
local id = append(KEYS[1], 'note', count(at[1]) or 0, count(at[2]) or 0, hash, prev, body)
if through ~= '' then
  redis.call('XTRIM', KEYS[1], 'MINID', through)
  redis.call('XDEL', KEYS[1], through)
end
return { 'ok', id }
