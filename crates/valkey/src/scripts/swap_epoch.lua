-- Replaces a document of the current epoch if it is as expected, and says that it
-- changed. One that was written before a failover counts as none.
-- KEYS: the document. ARGV: the version expected ('' for none), the version that
-- it has then ('' to remove it), its bytes, the channel, its name.
-- Gives 1, or 0 when it is not as expected.
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local head = redis.call('GETRANGE', KEYS[1], 0, #id + 31)
local version = ''
if string.sub(head, 1, #id) == id then
  version = string.sub(head, #id + 1)
end
if version ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], id .. ARGV[2] .. ARGV[3])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
