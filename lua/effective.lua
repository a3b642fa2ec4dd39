-- effective: reads what is in force now, after open time and glide, without changing anything.
-- KEYS:
--   params      the params hash
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
-- RETURNS: [nowUs, inForce, tokens, subjectTokens], or [nowUs] when the params are missing
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local now = now_us(ARGV[1])
if not now then return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs is a number') end
local p = read_params(KEYS[1])
if not p then return { string.format('%.0f', now) } end
local v = view_of(p, now)
return {
  string.format('%.0f', now), v.text,
  string.format('%.17g', v.tokens), string.format('%.17g', v.subjectTokens),
}
