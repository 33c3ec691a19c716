//! Module.
const std = @import("std");
/// A row.
pub const Keyboard = struct {
    keys: []u8,
    const Self = @This();
    /// Hides.
    pub fn hide(self: *Self, comptime T: type, view: View) !bool {
        // ask the system
        const m = try system.service("input", .soft);
        std.debug.print("hidden {s}\n", .{view.id});
        return m.hide(view) catch |err| return err;
    }
    fn inner() void {}
};
pub const Shape = enum { a, b };
pub const U = union(enum) { x: i32 };
export fn add(a: i32, b: i32) i32 { return a + b; }
extern fn ext(x: i32) void;
fn Generic(comptime T: type) type { return struct { x: T, pub fn get(s: @This()) T { return s.x; } }; }
test "works" { try std.testing.expect(true); }
test { _ = Keyboard; }
test decl { }
/// Grows: names of Zig in other letters are quoted.
fn @"größe"(@"höhe": u8) void {}
fn @"with space"() void {}
inline fn c() void { comptime { } }
const multi = \\a
  \\b
;
