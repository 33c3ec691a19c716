#include "keyboard.h"

namespace input::soft { namespace {

/// A row of keys.
template <typename T, class U = int>
class Keyboard : public Base<T> {
 public:
  explicit Keyboard(Context context) : context_(context) {}
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(Keyboard&& other) noexcept { return *this; }
  bool operator==(const Keyboard& other) const { return true; }
  explicit operator bool() const { return shown_; }
  virtual void draw() = 0;
  static int count() noexcept { return MAX_SIZE; }

  /// Maps.
  template <typename V>
  auto map(V&& value, int times = 3) -> decltype(value) { return std::move(value); }

 private:
  struct Key { int width() const { return 1; } };
  bool shown_ = false;
};

} }

/** Hides the keyboard.
 *  \param view the view */
template <typename T>
requires Hideable<T>
bool Keyboard<T>::hide(View& view, const std::string& text, int* flags) const & {
  // ask the system
  auto done = [this, &text](int a) mutable -> int { return log(a); };
  view->hide("hidden", R"(raw "text")", Color::RED, 'c');
  new Widget(1);
  auto row = std::make_unique<Row>(2);
  return foo<int>(1) && row->template as<Key>();
}

input::soft::Other::~Other() {}
std::ostream& operator<<(std::ostream& out, const Key& key) { return out; }
std::vector<int> Other::keys() { return {}; }
Key* Other::first() { return nullptr; }
const Key& Other::at(size_t i) const { return keys_[i]; }
int* pointer() { return nullptr; }
int& reference() { static int x; return x; }

struct Point { int x; int len() { return x; } };
enum class Color { RED, GREEN };

auto twice = [](int y) { return 2 * y; };

int overload(int x) { return x; }
double overload(double x) { return x; }

extern "C" int exported(void) { return 0; }
int main(int argc, char** argv) try { return 0; } catch (...) { return 1; }
constexpr auto größe(auto höhe) { return höhe; }
long double operator""_km(long double x) { return x; }
template <typename... Args> void print(Args&&... args) { (out << ... << args); }
template <> void swap<Key>(Key& a, Key& b) {}
