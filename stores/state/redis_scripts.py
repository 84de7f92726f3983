"""Scripts that Redis runs by itself, so that reading, comparing and writing are one step for all clients."""

SAVE = """
local condition, name, line, body = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local generation, seq, closed = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local stored = redis.call('HMGET', KEYS[1], 'generation', 'seq', 'closed', 'revision')
if redis.call('EXISTS', KEYS[1]) == 1 and condition ~= 'always' then
  if condition ~= 'later' then
    local at = 'at ' .. tostring(stored[1]) .. ' ' .. tostring(stored[2])
    if stored[4] ~= condition and at ~= condition then return 0 end
  else
    local g, s, c = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3])
    if not (g and s and c) then return redis.error_reply('DAMAGED the hash has no position') end
    if generation < g or (generation == g and seq < s) then return 0 end
    if generation == g and seq == s and closed < c then return 1 end
  end
elseif condition ~= 'always' and condition ~= 'later' and condition ~= 'absent' then
  return 0
end
redis.call('HSET', KEYS[1], 'generation', ARGV[5], 'seq', ARGV[6], 'closed', ARGV[7], 'revision', ARGV[8], 'body', body)
redis.call('HSET', KEYS[2], name, line)
return 1
"""
"""Keys: the record, the user's index. Arguments: condition, slot's name, its line, body, generation, seq, closed,
a new revision.

1: written, or the same position and nothing to write. 0: what is stored is later, or changed since it was read.
Positions stay below 2^53, where Lua's numbers are exact.
"""

DELETE = """
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
"""
"""Keys as above; argument: the slot's name."""
