-- anchor: where a bucket's tokens count from when its text is no mark at or before the clock; `stranded` says that it
-- must be written even by a denial. Reads mark, v, per_second; sets anchor.
local stranded = true
if not managed then
  anchor, stranded = unmanaged_base(mark, per_second)
else
  -- A number lies ahead: the clock was set back, or it is another epoch's. Else calls without params left it, or the
  -- subject had numbers of its own.
  local tokens = tonumber(string.match(mark, '^[uo]:(%d+%.?%d*):') or '')
  anchor = tokens and v - tokens or v
end
