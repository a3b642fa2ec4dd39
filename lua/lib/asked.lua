-- asked: what the take of `arg` asks for: local cost and reserve. The plain `1` is read by no pattern.
local cost, reserve = 1, reserve_default
if arg ~= '1' then
  cost = costs and costs[arg]
  if not cost then
    --- @include lib/cost.lua
  end
  reserve = reserves[arg]
end
