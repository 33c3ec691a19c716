--- Module.
local M = {}
--- Hides.
-- @param view the view
function M.hide(view, ...)
  -- ask the system
  local m = system:service("input_method", 'x', [[raw]], MAX)
  m.hide(view)
  return M.new { 1 }
end
function M:method(a) self.x = a end
local function loc(a) end
function glob() end
local anon = function(x) return x end
M.field = function(y) end
M["key"] = function() end
local t = { f = function() end, ["g"] = function() end }
--[[ block
doc ]]
function a.b.c() end
function groesse() return "größe" end
setmetatable(M, { __index = function(t, k) end })
