-- Extends leases that are still their terms', each for itself.
-- KEYS: lease, fence of each.  ARGV: first line of the term's record, ttl in ms of each.
local answers = {}
for n = 1, #KEYS, 2 do
  local lease, fence, term, ttl = KEYS[n], KEYS[n + 1], ARGV[n], tonumber(ARGV[n + 1])
  local held = redis.pcall('GET', lease)
  local answer
  if type(held) == 'table' then
    answer = {'error', held.err}
  elseif not held then
    -- A second look, for the reason only; it must not fail the others.
    local counter = redis.pcall('HMGET', fence, 'token', 'released')
    answer = {'gone', counter[1] or '', counter[2] or ''}
  elseif string.sub(held, 1, #term) ~= term then
    answer = {'held', held}
  else
    local left = redis.call('PTTL', lease)
    if left < 0 then
      answer = {'foreign', lease, 'has no expiry'}
    else
      -- A late copy of an older renewal must not bring the expiry forward.
      if left < ttl then redis.call('PEXPIRE', lease, ttl) end
      answer = 1
    end
  end
  answers[#answers + 1] = answer
end
return answers
