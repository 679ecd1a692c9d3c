-- Gives back what was spent last.
-- KEYS: for each claim its list and its sum, as in spend.lua. ARGV: for each claim
-- its amount and its window in milliseconds (0: none).
for i = 1, #KEYS / 2 do
  local list, sum = KEYS[2 * i - 1], KEYS[2 * i]
  local left, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  if window == 0 then
    local spent = tonumber(redis.call('GET', sum) or '0')
    if spent > 0 then
      redis.call('DECRBY', sum, math.min(left, spent))
    end
  end
  while window > 0 and left > 0 do
    local last = redis.call('LINDEX', list, -1)
    if not last then
      break
    end
    local at, amount = string.match(last, '^(%d+):(%d+)$')
    amount = tonumber(amount)
    local given = math.min(left, amount)
    left = left - given
    if given == amount then
      redis.call('RPOP', list)
    else
      redis.call('LSET', list, -1, string.format('%s:%d', at, amount - given))
    end
    redis.call('DECRBY', sum, given)
  end
end
return 1
