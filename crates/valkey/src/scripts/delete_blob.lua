-- Deletes a blob. KEYS: the blob, the index. ARGV: its name.
-- Gives 1 when there was one.
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
