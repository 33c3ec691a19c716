object A {
  /** Reads the file.
    *
    * More.
    */
  def load(p: String): Int = {
    val x = open(p)
    x
  }
}
