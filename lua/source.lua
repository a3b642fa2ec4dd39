-- source: keeps the source of a policy that was adopted, each once, and as many as are asked for; the newest last.
-- KEYS:
--   sources     a stream: one entry a source
-- ARGV:
--   hash        of the policy
--   meta        what is kept of it, JSON
--   most        so many are kept
-- RETURNS: [hash...] of those that fell out
-- TIME: never
-- COMPLEXITY: O(most)
--- @include lib/number.lua
local hash, meta, most = ARGV[1], ARGV[2], within(ARGV[3], 1, 1000)
if hash == '' or not most then
  return redis.error_reply('FLYBALL_E_CALL_INVALID source wants a hash, and most from 1 to 1000')
end
-- A key of another type is of nobody's.
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'stream' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local kept = redis.call('XRANGE', KEYS[1], '-', '+')
local function hash_of(entry)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'hash' then return entry[2][i + 1] end
  end
end
if #kept > 0 and hash_of(kept[#kept]) == hash then return {} end
redis.call('XADD', KEYS[1], '*', 'hash', hash, 'meta', meta)
local fell, others = {}, {}
for i = 1, #kept do
  if hash_of(kept[i]) == hash then redis.call('XDEL', KEYS[1], kept[i][1]) else others[#others + 1] = kept[i] end
end
for i = 1, #others - most + 1 do
  redis.call('XDEL', KEYS[1], others[i][1])
  fell[#fell + 1] = hash_of(others[i]) or ''
end
return fell
