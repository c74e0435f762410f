local function older(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local newest = redis.call('GET', KEYS[1]) or '0'
if not string.match(ARGV[1], '^[1-9]%d*$') then
  return redis.error_reply('FENCED ' .. ARGV[1] .. ' is no fencing token')
end
if older(ARGV[1], newest) then
  return redis.error_reply('FENCED token ' .. ARGV[1] .. ' is older than ' .. newest)
end
redis.call('SET', KEYS[1], ARGV[1])
