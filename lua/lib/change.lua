-- change: brings a subject's bucket from one set of numbers to another, at the moment they change. What it holds
-- stays, as far as it fits: more room is not more tokens.
-- The bucket of the mode that is not on is left alone where there is none.
local function change_one(key, before, after, now, s, on)
  -- MGET, since a key of another type then reads as none: nothing fails in the middle of a write.
  local text = redis.call('MGET', key)[1]
  local bound = before or s.rate >= 0
  if after and (text or on) then
    -- Nothing has bound this subject so far, so it begins full.
    local tokens = bound and held(text, before, now, s) or room_of(after, s)
    redis.call('SET', key, own_text(math.min(room_of(after, s), tokens), after, now, s), 'PX', own_life(after, now, s))
  elseif after then
    return
  elseif text and s.rate < 0 then
    redis.call('DEL', key)
  elseif text then
    local tokens = math.min(s.capacity, (held(text, before, now, s)))
    redis.call('SET', key, string.format('%.17g', s.clock - tokens), 'PX', string.format('%.0f', math.max(1, s.ttl)))
  end
end

-- Windows keep what was taken, whatever the numbers: only buckets change.
local function change_numbers(p, bucket, shadow, before, after, now, s)
  if p.algorithm and p.algorithm ~= '' and p.algorithm ~= 'token-bucket' then return end
  before, after = whole(before, s), whole(after, s)
  change_one(bucket, before, after, now, s, p.mode ~= 'shadow')
  change_one(shadow, before, after, now, s, p.mode == 'shadow')
end

-- What the policy says of subjects, of a view of the params.
local function subjects_of(v)
  local slack = 0.0000005 + math.max(0, v.subjectTokens) * 4.4408920985006262e-16
  local floor = v.subjectFloor
  if floor > v.subjectTokens + slack then floor = -1e300 end
  return {
    clock = v.subjectTokens, slack = slack, rate = v.subjectRate, capacity = v.subjectCapacity, floor = floor,
    ttl = v.subjectTtlMs, since = v.subjectSince, lowest = v.subjectLowest,
  }
end
