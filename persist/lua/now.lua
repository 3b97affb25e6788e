-- Reads the clock of the server that holds the keys.
--
-- Returns  TIME's seconds and microseconds
local time = clock()
return { time[1], time[2] }
