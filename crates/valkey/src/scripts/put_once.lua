-- Keeps something that may be taken once, with the replication id in front: after
-- a failover the id is another, and what was taken before may seem to be there.
-- KEYS: the value. ARGV: its bytes, its life in milliseconds.
-- Gives 1, or 0 when there is one already.
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if redis.call('SET', KEYS[1], id .. ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0
