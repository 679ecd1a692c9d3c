-- Keeps a blob and notes its size in the index of its owner.
-- KEYS: the blob, the index. ARGV: its bytes, its name.
redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[2], #ARGV[1])
return 1
