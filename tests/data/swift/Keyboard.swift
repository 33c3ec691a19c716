import Foundation
/// A row.
public final class Keyboard<T: Key>: Base, Shape {
    static let max = 3
    /// Makes.
    public init?(context: Context, size: Int = 3) { super.init() }
    deinit { close() }
    /**
     Hides.
     - Parameter view: the view
     */
    @discardableResult
    public override func hide<V>(_ view: View, for flags: Int..., done: @escaping (Bool) -> Void) async throws -> Bool where V: X {
        // ask the system
        let m = try await system.service(Context.inputMethod)
        func inner(a: Int) -> Int { a }
        list.map { $0 + 1 }.filter { x in x > 0 }
        guard let y = m?.hide("a \(view.id) b", .red) else { return false }
        return Widget(x: 1)
    }
    var twice: Int { size * 2 }
    var w: Int { get { 1 } set { x = newValue } }
    var observed = 1 { didSet { go() } }
    static func == (a: Keyboard, b: Keyboard) -> Bool { true }
    subscript(i: Int) -> Int { get { i } }
    class func make() {}
}
extension String { func größe(höhe: Int) -> Int { höhe } }
struct Point { mutating func move() {} }
enum Color: String { case red = "r", green; case rgb(Int); func label() -> String { rawValue } }
protocol Shape { func area() -> Double; var n: Int { get } }
actor Counter { func inc() {} }
let lam = { (x: Int) in x }
func free(_ x: Int) {}
prefix operator +++
infix func +++ (a: Int, b: Int) {}
