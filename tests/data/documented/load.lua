--- Reads the file.
-- @param p where
function load(p)
  local x = open(p)
  return x
end
