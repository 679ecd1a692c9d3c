-- Acquires a lease. The fence follows the server's clock, so that one that was
-- given out before a failover and lost with it is not given out again.
-- KEYS: the lease, the last fence. ARGV: its life in milliseconds, how long the
-- last fence is kept. Gives the fence, or 0 while somebody holds it.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local fence = string.format('%.0f', math.max(last + 1, now))
redis.call('SET', KEYS[2], fence, 'PX', ARGV[2])
redis.call('SET', KEYS[1], fence, 'PX', ARGV[1])
return tonumber(fence)
