/**
 * Reads the file.
 *
 * More.
 */
fun load(p: String): Int {
    val x = open(p)
    return x
}
