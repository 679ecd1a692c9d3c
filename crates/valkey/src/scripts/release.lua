-- Lets go of a lease that is still held. KEYS: the lease. ARGV: the fence.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
