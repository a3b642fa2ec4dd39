-- number: text → finite number, or nil. tonumber alone also reads hexadecimal, 'nan' and 'inf'.
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

-- A number that reads back to the same bits.
local function exact(n)
  return string.format('%.17g', n)
end
