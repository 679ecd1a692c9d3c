-- Replaces a value of the current epoch that is still the same. KEYS: the value.
-- ARGV: the next value, its life in milliseconds, the one before (left out: none).
-- Gives 1, 0 when it is another, or 2 when it was written before a failover.
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local value = redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #id) ~= id then
  return 2
end
if (value and string.sub(value, #id + 1)) ~= (ARGV[3] or false) then
  return 0
end
redis.call('SET', KEYS[1], id .. ARGV[1], 'PX', ARGV[2])
return 1
