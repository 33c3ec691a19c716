/// Reads the file.
///
/// - Parameter p: where
func load(p: String) -> Int {
    let x = open(p)
    return x
}
