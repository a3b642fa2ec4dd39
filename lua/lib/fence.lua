-- fence: does `owner:token` hold the lease, and is it the newest grant that the params know?
local function holds_lease(lease_key, owner, token, fence)
  local number = count(token)
  if not number or number < fence then return false end
  return redis.call('GET', lease_key) == owner .. ':' .. token
end

-- The token of whoever holds the lease now; 0: nobody.
local function lease_token(lease_key)
  return tonumber(string.match(redis.call('GET', lease_key) or '', ':(%d+)$')) or 0
end
