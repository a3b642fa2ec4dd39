-- actuate: changes what is in force and appends exactly one audit entry, or refuses and writes nothing.
-- Checks authority, revision, audit head, holds and bounds; settles the token clocks at what really held.
-- KEYS:
--   params      the params hash
--   audit       the audit stream
--   lease       who may actuate
--   state       the law's checkpoint
--   policy      the adopted policy
--   version     the policy under its hash (any key of the limiter when no policy is given)
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   authority   lease | person
--   owner       of the lease; empty for a person
--   token       fencing token of the lease; empty for a person
--   epoch       expected epoch; with `create` the new one
--   revision    expected revision; with `create` the new one
--   create      1: the params are missing and are created
--   newEpoch    empty, or a higher epoch to begin: writes were lost
--   cause       law | breaker | policy | person | settle | schedule
--   refloor     empty | `empty` | `full` | a share 0 to 1: the part of the capacity that buckets hold after this write
--   leaseMs     how long this write keeps the autopilot's word
--   prev        hash of the audit entry before this one
--   hash        hash of this audit entry
--   body        this audit entry, canonical JSON
--   checkpoint  the law's state; empty: none
--   policyHash  of the policy; empty: none is adopted
--   policyJson  the policy, canonical JSON
--   channel     where the change is noticed
--   limiter     name that the notice carries
--   change...   pairs of field and value
-- RETURNS: ['ok', nowUs, epoch, revision, streamId] or ['refused', reason, detail, nowUs, epoch, revision, head]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
--- @include lib/hot.lua
--- @include lib/fence.lua
--- @include lib/head.lua
--- @include lib/fields.lua
--- @include lib/limits.lua
--- @include lib/floors.lua

local now = now_us(ARGV[1])
local authority, owner, token = ARGV[2], ARGV[3], ARGV[4]
local epoch, revision = count(ARGV[5]), count(ARGV[6])
local create, new_epoch, cause = ARGV[7] == '1', count(ARGV[8]), ARGV[9]
local refloor = REFLOOR[ARGV[10]] or within(ARGV[10], 0, 1)
local lease_ms = within(ARGV[11], 0, LEASE_MAX_MS)
local prev, hash, body = ARGV[12], ARGV[13], ARGV[14]
local checkpoint, policy_hash, policy_json = ARGV[15], ARGV[16], ARGV[17]
local channel, limiter = ARGV[18], ARGV[19]
local before = read_params(KEYS[1])
local head, head_epoch = audit_head(KEYS[2])

local function integer(n)
  return string.format('%.0f', n)
end
local function refuse(reason, detail)
  local at = before or { epoch = 0, revision = 0 }
  return { 'refused', reason, detail, integer(now or 0), integer(at.epoch), integer(at.revision), head }
end

-- 1. May this writer write, and does it know what it changes?
if not now or not epoch or not revision or not lease_ms or (authority == 'lease' and lease_ms < 1)
  or not (new_epoch or ARGV[8] == '') then
  return refuse('invalid', 'nowUs, epoch, revision, newEpoch and leaseMs are numbers, leaseMs of a lease above 0')
end
if not refloor and ARGV[10] ~= '' then return refuse('invalid', 'refloor is empty, full or a share from 0 to 1') end
if create and before then return refuse('exists', 'the params are there already') end
if not create and not before then return refuse('invalid', 'the params are missing: create them') end
if authority == 'lease' then
  if not holds_lease(KEYS[3], owner, token, before and before.fence or 0) then
    return refuse('lease', 'the lease is held by ' .. (lease_of(KEYS[3]) or 'nobody'))
  end
elseif authority ~= 'person' then
  return refuse('invalid', 'authority is ' .. authority .. ', not lease or person')
end
if before and (epoch ~= before.epoch or revision ~= before.revision) then
  return refuse('revision', 'in force is ' .. integer(before.epoch) .. '/' .. integer(before.revision))
end
if (create and epoch <= head_epoch) or (new_epoch and new_epoch <= epoch) then
  return refuse('revision', 'a new epoch must be above ' .. integer(math.max(head_epoch, before and epoch or 0)))
end
if prev ~= head then return refuse('head', 'the newest audit entry is another one') end

-- 2. What holds now, then the change on top of it.
local p, e = settled(before, now)
local changed, fault = apply_change(p, 20)
fill_later(p)
if fault then return refuse('invalid', fault) end
if create then
  fault = missing_field(p)
  if fault then return refuse('invalid', fault) end
  p.v, p.epoch, p.revision = 1, epoch, revision
else
  p.revision = p.revision + 1
  if new_epoch then p.epoch = new_epoch end
end
if authority == 'lease' then
  p.validUntil = math.floor(now / 1000) + lease_ms
  p.fence = tonumber(token)
else
  if create then p.fence = lease_token(KEYS[3]) end
  -- A person's write is a sign of life: what they set is held before the limits glide, daemon or not.
  p.validUntil = math.max(p.validUntil, math.floor(now / 1000))
end
normalise_open(p, e, changed, now)

-- 3. Is it allowed?
local reason
reason, fault = forbidden(before, p, e, changed, cause, now, new_epoch and cause == 'settle')
if reason then return refuse(reason, fault) end

-- 4. Clocks and floors, so that no write mints tokens.
set_floors(before, p, e, refloor)

-- 5. All of it, or nothing: every check lies behind.
local fields = {}
for i = 1, #FIELDS do
  local field = FIELDS[i]
  local value = p[field]
  fields[2 * i - 1] = field
  fields[2 * i] = TEXT[field] and value or changed[field] or shortest(value)
end
fields[#fields + 1] = 'hot'
fields[#fields + 1] = pack_hot(view_of(p, now))
-- What may fail comes first, since nothing is undone: a channel without the right to it, a log that is full.
redis.call('PUBLISH', channel, limiter .. ' ' .. integer(p.epoch) .. ' ' .. integer(p.revision))
local id = append(KEYS[2], 'change', p.epoch, p.revision, hash, prev, body)
if create then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], unpack(fields))
if authority == 'lease' then redis.call('PEXPIRE', KEYS[3], integer(math.ceil(lease_ms))) end
if checkpoint ~= '' then redis.call('SET', KEYS[4], checkpoint, 'PX', '3600000') end
if policy_hash ~= '' then
  redis.call('SET', KEYS[5], policy_json)
  redis.call('SET', KEYS[6], policy_json)
end
return { 'ok', integer(now), integer(p.epoch), integer(p.revision), id }
