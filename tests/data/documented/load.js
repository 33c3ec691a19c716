/**
 * Reads the file.
 *
 * More.
 * @param {string} p where
 */
function load(p) {
  const x = open(p);
  return x;
}
class A {
  /** Saves the file. */
  save(p) {
    const y = p;
    return y;
  }
}
/** Shows the file.
 * @return it */
export const show = (p) => {
  const z = p;
  return z;
};
