<?php
class A {
  /**
   * Reads the file.
   *
   * @param string $p where
   */
  public function load($p) {
    $x = open($p);
    return $x;
  }
}
