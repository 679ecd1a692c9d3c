-- Adds to a value that has a certain length, and lets it live on. KEYS: the value.
-- ARGV: the length, the bytes to add, the life in milliseconds.
-- Gives 1, or 0 when the length is another.
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('APPEND', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
