-- opening: what a call over windows or of pacing stands on: the time, what is in force, and whether it may decide.
-- The source sets FIRST (arguments before the takes) and LEADING (keys before the subjects). Answers at once when the
-- call is late, or when the params want other keys: the shadow's, or those by which single subjects are known.
local call = redis.call
local takes = #ARGV - FIRST
-- `4` and `5` in place of `0` and `1`: the keys are those of a call that asks what is known of its subjects.
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'
local before_subjects = rich and LEADING + 3 or LEADING
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')
end
local now, charge_by = now_us(ARGV[1]), ARGV[2]
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end
if not now or not charge_by then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')
end
local params_key = KEYS[1]
local NONE = -1e300
--- @include lib/packed.lua
local subject_lowest = subject_rate
if not text then
  local p = read_params(params_key)
  managed = p and true
  if p then
    --- @include lib/viewed.lua
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest
  else
    --- @include lib/unmanaged.lua
  end
end
if charge_by ~= '' and now > charge_by then return { 1, now, text } end
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end
code = code % 16
local mode = code % 4
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end
local state = (code - mode) / 4
local open, probing = state == 1, state == 2
local total_key = KEYS[2]
local reply = { 0, now, text }
local costs, reserves

-- Whole ms for an answer; beyond ten years there is no time to tell.
local function whole_ms(us)
  if not us or us > 315360000000000 then return -1 end
  return math.max(1, math.ceil(us / 1000))
end
