-- Takes what may be taken once.
-- KEYS: the value. Gives its bytes, nothing when there is none, or 0 when it was
-- put before a failover.
local value = redis.call('GETDEL', KEYS[1])
if not value then
  return false
end
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if string.sub(value, 1, #id) ~= id then
  return 0
end
return string.sub(value, #id + 1)
