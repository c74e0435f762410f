-- Shows who holds a lease, and for how long still, at one instant.
-- KEYS: lease.
local held = redis.call('GET', KEYS[1])
if not held then return {'free'} end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return {'foreign', KEYS[1], 'has no expiry'} end
return {'held', held, left}
