// Keyboards.

/**
 * A row.
 */
@Serializable
data class Keyboard<T : Key>(private val context: Context, var size: Int = 3) : Base(context), Shape by other {
    companion object {
        const val MAX = 3
        fun create(): Keyboard<Key> = Keyboard(ctx)
    }
    constructor(name: String) : this(Context(name)) { start() }
    init { println("start") }
    /**
     * Hides.
     * @param view the view
     */
    @JvmStatic
    override suspend fun <V : View> hide(view: View, vararg flags: Int = 1): Boolean {
        // ask the system
        val m = system.getService<M>(Context.INPUT_METHOD) as M
        fun inner(a: Int) = a
        list.map { it + 1 }.filter { x -> x > 0 }
        return m?.hide("a ${view.id} b $size", """raw""", 'c') ?: Widget()
    }
    val twice: Int get() = size * 2
    var w: Int = 1
        get() { return field }
        set(value) { field = value }
    operator fun plus(o: Keyboard<T>) = this
    abstract fun draw()
}
fun String.größe(höhe: Int): Int = höhe
fun <T> List<T>.second(): T { return this[1] }
object Single {
    fun only() {}
}
interface Shape {
    fun area(): Double
    fun square(): Double { return area() * area() }
}
enum class Color(val x: Int) {
    RED(1),
    GREEN(2);

    fun label() = name
}
val lam = { x: Int -> x + 1 }
val anon = fun(x: Int): Int { return x }
fun `with spaces`() {}
sealed interface S
