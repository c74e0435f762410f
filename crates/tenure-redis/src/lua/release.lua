-- Frees a lease that is still its term's.
-- KEYS: lease, fence.  ARGV: first line of the term's record, token, channel.
local held = redis.call('GET', KEYS[1])
if not held then return {'gone'} end
if string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return {'held', held} end
redis.call('DEL', KEYS[1])
-- What follows is not needed for the lease to be free: the note that this term ended in order, and the hint.
if redis.pcall('HGET', KEYS[2], 'token') == ARGV[2] then redis.pcall('HSET', KEYS[2], 'released', ARGV[2]) end
redis.pcall('PUBLISH', ARGV[3], 'released')
return {'freed'}
