-- Replaces a document if it is as expected, and says that it changed.
-- KEYS: the document. ARGV: the version expected ('' for none), the version that
-- it has then ('' to remove it), its bytes, the channel, its name.
-- Gives 1, or 0 when it is not as expected.
if redis.call('GETRANGE', KEYS[1], 0, 31) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
