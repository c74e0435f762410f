-- Takes a free lease, or answers the holder's repeated bid with its own grant.
-- KEYS: lease, fence.  ARGV: candidate, ttl in ms, payload, highest token the client has seen, channel.
local lease, fence = KEYS[1], KEYS[2]
local candidate, ttl = ARGV[1], tonumber(ARGV[2])

local function record(token, taken_at)
  return 'tenure/1 ' .. token .. ' ' .. candidate .. '\n' .. ARGV[2] .. ' ' .. taken_at .. '\n' .. ARGV[3]
end

local held = redis.call('GET', lease)
if held then
  local left = redis.call('PTTL', lease)
  if left < 0 then return {'foreign', lease, 'has no expiry'} end
  local token, holder, taken_at = string.match(held, '^tenure/1 (%d+) ([^\n]+)\n%d+ (%d+)\n')
  if holder ~= candidate then return {'held', held, left} end
  -- A late copy of this bid must not bring the expiry forward.
  redis.call('SET', lease, record(token, taken_at), 'PX', math.max(left, ttl))
  return {'granted', token, 0}
end

local counter = redis.pcall('HMGET', fence, 'token', 'released')
if counter.err then
  if string.find(counter.err, 'WRONGTYPE', 1, true) then return {'foreign', fence, 'is no hash'} end
  return counter
end
local last = counter[1] or '0'
-- 15 digits are what a Lua number holds without loss: a million grants a second for 31 years.
if not string.match(last, '^%d+$') or #last > 15 then return {'foreign', fence, 'holds no token'} end
-- The client's word counts when a failover has turned the counter back.
local step = math.max(1, tonumber(ARGV[4]) + 1 - tonumber(last))
local token = string.format('%.0f', redis.call('HINCRBY', fence, 'token', step))
local now = redis.call('TIME')
redis.call('SET', lease, record(token, now[1] .. string.format('%06d', now[2])), 'NX', 'PX', ttl)
-- A hint for those who wait; the grant stands without it.
redis.pcall('PUBLISH', ARGV[5], 'granted')
local clean = counter[1] and counter[2] == counter[1] and step == 1
return {'granted', token, clean and 1 or 0}
