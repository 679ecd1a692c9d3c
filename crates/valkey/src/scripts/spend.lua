-- Spends from counters in sliding windows: all of the claims, or none.
-- KEYS: for each claim the list of what was spent when (`milliseconds:amount`,
-- oldest first) and the sum of that list. ARGV: 'spend' or 'look', how long a
-- counter without a window is kept; then for each claim its amount, limit and
-- window in milliseconds (0: none).
-- Gives {0, 0}, or the place of the claim that is refused, from 1, and after how
-- many milliseconds it would not be (-1: waiting does not help).
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = #KEYS / 2

local function claim(i)
  return KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]),
    tonumber(ARGV[3 * i + 2])
end

local function entry(text)
  local at, amount = string.match(text, '^(%d+):(%d+)$')
  return tonumber(at), tonumber(amount)
end

-- When `needed` of what was spent will not count any more.
local function wait(list, window, needed)
  local from, freed = 0, 0
  while true do
    local some = redis.call('LRANGE', list, from, from + 99)
    if #some == 0 then
      return -1
    end
    for _, text in ipairs(some) do
      local at, amount = entry(text)
      freed = freed + amount
      if needed <= freed then
        return at + window - now
      end
    end
    from = from + 100
  end
end

for i = 1, count do
  local list, sum, amount, limit, window = claim(i)
  local spent = tonumber(redis.call('GET', sum) or '0')
  while window > 0 do
    local first = redis.call('LINDEX', list, 0)
    if not first then
      break
    end
    local at, over = entry(first)
    if now < at + window then
      break
    end
    redis.call('LPOP', list)
    spent = redis.call('DECRBY', sum, over)
  end
  if limit < spent + amount then
    if window == 0 then
      return {i, -1}
    end
    return {i, wait(list, window, spent + amount - limit)}
  end
end

if ARGV[1] == 'look' then
  return {0, 0}
end

for i = 1, count do
  local list, sum, amount, _, window = claim(i)
  redis.call('INCRBY', sum, amount)
  if window == 0 then
    redis.call('PEXPIRE', sum, ARGV[2])
  else
    local last = redis.call('LINDEX', list, -1)
    local at, before = nil, nil
    if last then
      at, before = entry(last)
    end
    if at == now then
      redis.call('LSET', list, -1, string.format('%.0f:%d', now, before + amount))
    else
      redis.call('RPUSH', list, string.format('%.0f:%d', now, amount))
    end
    redis.call('PEXPIRE', list, window)
    redis.call('PEXPIRE', sum, window)
  end
end
return {0, 0}
