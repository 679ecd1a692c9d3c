-- Keeps a value of the current epoch, with the replication id in front, in place of
-- the one that is there. KEYS: the value. ARGV: its bytes, its life in milliseconds.
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
redis.call('SET', KEYS[1], id .. ARGV[1], 'PX', ARGV[2])
return 1
