-- Reads a value of the current epoch. KEYS: the value.
-- Gives its bytes, nothing when there is none, or 0 when it was written before a
-- failover, which may have lost its end.
local value = redis.call('GET', KEYS[1])
if not value then
  return false
end
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if string.sub(value, 1, #id) ~= id then
  return 0
end
return string.sub(value, #id + 1)
