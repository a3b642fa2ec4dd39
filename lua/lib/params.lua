-- params: the params hash as a table of numbers and texts; nil when there is none.
local TEXT = {
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,
  algorithm = true,
}

local function read_params(key)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local p = {}
  for i = 1, #flat, 2 do
    local field = flat[i]
    if TEXT[field] then
      p[field] = flat[i + 1]
    elseif field ~= 'hot' then
      p[field] = tonumber(flat[i + 1])
    end
  end
  return p
end
