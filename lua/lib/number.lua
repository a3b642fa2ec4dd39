-- number: text → finite number, or nil. tonumber alone also reads hexadecimal, 'nan' and 'inf'.
local LARGEST = 9007199254740992 -- 2^53
local LEASE_MAX_MS = 315360000000 -- ten years

local function finite(text)
  if type(text) ~= 'string' or #text > 32 then return nil end
  if not string.find(text, '^%-?%d+%.?%d*$')
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then
    return nil
  end
  local n = tonumber(text)
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end
  return n
end

-- A finite number from `least` to `most`, or nil.
local function within(text, least, most)
  local n = finite(text)
  if n and n >= least and n <= most then return n end
end

-- A count: whole, 0 … 2^53, or nil.
local function count(text)
  local n = within(text, 0, LARGEST)
  if n and n % 1 == 0 then return n end
end

-- A number that reads back to the same bits.
local function exact(n)
  return string.format('%.17g', n)
end
