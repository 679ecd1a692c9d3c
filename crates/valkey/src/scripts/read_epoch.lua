-- Reads a document of the current epoch.
-- KEYS: the document. Gives its version and bytes, or nothing when there is none
-- or when it was written before a failover.
local value = redis.call('GET', KEYS[1])
if not value then
  return false
end
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if string.sub(value, 1, #id) ~= id then
  return false
end
return string.sub(value, #id + 1)
