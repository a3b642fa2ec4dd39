-- head: hash and epoch of the newest audit entry; 64 zeros and 0 when there is none.
local GENESIS = string.rep('0', 64)

local function audit_head(key)
  local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if not newest then return GENESIS, 0 end
  local hash, epoch = GENESIS, 0
  for i = 1, #newest[2], 2 do
    if newest[2][i] == 'hash' then hash = newest[2][i + 1] end
    if newest[2][i] == 'epoch' then epoch = count(newest[2][i + 1]) or 0 end
  end
  return hash, epoch
end

-- A daemon trims the log, with a note of it. Past this, with none alive, the oldest go without.
local function append(key, kind, epoch, revision, hash, prev, body)
  return redis.call('XADD', key, 'MAXLEN', '~', '100000', '*', 'kind', kind,
    'epoch', string.format('%.0f', epoch), 'revision', string.format('%.0f', revision),
    'hash', hash, 'prev', prev, 'body', body)
end
