-- Adds to a value of the current epoch that has a certain length, and lets it live
-- on. KEYS: the value. ARGV: the length, the bytes to add, the life in milliseconds.
-- Gives 1, 0 when the length is another, or 2 when it was written before a failover.
local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local length = redis.call('STRLEN', KEYS[1])
if length == 0 then
  if tonumber(ARGV[1]) ~= 0 then
    return 0
  end
  redis.call('SET', KEYS[1], id .. ARGV[2], 'PX', ARGV[3])
  return 1
end
if redis.call('GETRANGE', KEYS[1], 0, #id - 1) ~= id then
  return 2
end
if length - #id ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('APPEND', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
