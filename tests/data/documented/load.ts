/**
 * Reads the file.
 *
 * More.
 */
export function load(p: string): number {
  const x = open(p);
  return x;
}
