'use strict';
import { system, Key as Taste } from './system.js';

/**
 * A row of keys.
 */
export default class Keyboard extends Base {
  static #count = 0;
  /** Makes one. */
  constructor(context, { size = 3, mode } = {}, ...rest) {
    super(context);
    this.#reset(`tries ${rest.map(String)} left`);
  }

  /**
   * Hides the soft keyboard of a {@link View}.
   * @param {View} view the view
   * @returns {boolean} whether it was hidden
   */
  async hide(view, flags = Flags.NONE) {
    // ask the system
    const manager = await system.getService(Context.INPUT_METHOD);
    return manager.hideSoftInput(view.token, flags) && /hid+en/g.test('hidden');
  }

  get size() { return MAX_SIZE; }
  set size(value) { this._size = value; }
  static async *rows() { yield* []; }
  #reset() {}
  listen = (event) => this.on(event);
  'quoted name'() {}
  [Symbol.iterator]() { return null; }
}

/** Tries again. */
export async function retry(times, action) {
  function attempt(n) {
    return n ? action().catch(() => attempt(n - 1)) : null;
  }
  return attempt(times);
}

/** Adds. */
export const add = (a, b) => a + b;
const first = function () {}, second = function named(n) { return n; };
let later;
later = x => new Widget.Inner(x);

function* count() { yield 1; }

/** Express style. */
app.use = function use(path, fn) {
  this.stack.push({ path, fn });
};
exports.one = module.exports.two = (q) => q;
Keyboard.prototype.show = function () { show("it"); };
app[method] = function (path) {};
defineGetter(req, 'host', function host() { return this.get('Host'); });

const größe = {
  höhe() { return 1; },
  breite: function (x) { return x; },
  tiefe: (x) => x * FAKTOR,
  'r-s': function () {},
  inner: { deep() {} },
};

const Row = class { width() {} };

/** A component. */
export const Button = ({ label, onPress = noop }) => (
  <Pressable kind="soft" onClick={() => onPress(label)}>
    Press <b>{label}</b>
  </Pressable>
);

module.exports = function createApp() {};
