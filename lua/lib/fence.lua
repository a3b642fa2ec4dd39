-- fence: does `owner:token` hold the lease, and is it the newest grant that the params know?
-- MGET, since a key of another type then reads as none.
local function lease_of(lease_key)
  return redis.call('MGET', lease_key)[1]
end

local function holds_lease(lease_key, owner, token, fence)
  local number = count(token)
  if not number or number < fence then return false end
  return lease_of(lease_key) == owner .. ':' .. token
end

-- The token of whoever holds the lease now; 0: nobody.
local function lease_token(lease_key)
  return count(string.match(lease_of(lease_key) or '', ':(%d+)$')) or 0
end
