/// Reads the file.
///
/// # Panics
#[inline]
fn load(p: &str) -> i32 {
    let x = open(p);
    x
}
