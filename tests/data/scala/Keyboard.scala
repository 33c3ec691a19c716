package app.input
import scala.util._
/** A row. */
@deprecated("x")
final case class Keyboard[T <: Key](context: Context, size: Int = 3)(implicit ec: Ec) extends Base(context) with Shape {
  val Max = 3
  def this(n: String) = this(new Context(n))
  /** Hides.
    * @param view the view
    */
  @tailrec
  override def hide[V](view: View, flags: Int*)(implicit x: X): Boolean = {
    // ask the system
    val m = system.service[M](Context.INPUT_METHOD)
    def inner(a: Int) = a
    list.map(_ + 1).filter { y => y > 0 }
    m hide s"a ${view.id} b $size"
    m.hide("plain", """raw""", 'c', 'sym) match { case Some(q) => new Widget(1) ; case _ => false }
  }
  def draw(): Unit
  def +(o: Keyboard[T]): Keyboard[T] = this
  lazy val z = 1
  def proc() { go() }
}
object Keyboard { def apply() = 1 }
trait Shape { def area: Double = 1 }
def größe(höhe: Int): Int = höhe
enum Color { case Red, Green; def label = "x" }
extension (s: String) def second = s
given Ord[Int] with { def compare(a: Int) = 1 }
val lam = (x: Int) => x + 1
type A = B
def indented(x: Int): Int =
  val y = x
  y + 1
