/// Reads the file.
/// More.
fn load(p: []u8) i32 {
    const x = open(p);
    return x;
}
