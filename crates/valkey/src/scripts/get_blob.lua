-- A part of a blob. KEYS: the blob. ARGV: the first and the last place.
-- Gives nothing when there is no such blob.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return false
end
return redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[2])
