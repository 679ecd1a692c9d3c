-- Puts a message into a mailbox, where it waits for its life at most.
-- KEYS: the mailbox. ARGV: the message, how many may wait, the life.
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
