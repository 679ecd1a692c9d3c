-- Replaces a value that is still the same. KEYS: the value.
-- ARGV: the next value, its life in milliseconds, the one before (left out: none).
-- Gives 1, or 0 when it is another.
if redis.call('GET', KEYS[1]) ~= (ARGV[3] or false) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
