//! Keyboards.
use std::fmt;

const MAX_SIZE: usize = 3;

/// A row of keys.
#[derive(Debug)]
pub struct Keyboard<'a, T: Key> { keys: Vec<&'a T>, size: usize }

impl<'a, T: Key> Keyboard<'a, T> {
    /// Hides the keyboard.
    ///
    /// # Errors
    /// Where there is none.
    #[inline]
    #[must_use]
    pub async fn hide<V>(&mut self, view: &View, mut flags: u32, (a, b): (i32, i32)) -> Result<bool, Error>
    where
        V: Shape,
    {
        // ask the system
        let manager = system::service(Context::INPUT_METHOD)?;
        println!("hidden {}", flags);
        let add = |x: i32, y| x + y;
        manager.hide(view.token(), r"raw", 'c', MAX_SIZE, "line\n");
        fn inner() {}
        Ok(Keyboard { keys: vec![], size: parse::<usize>("1") })
    }
}

impl<T> fmt::Display for Keyboard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { write!(f, "keyboard") }
}

pub trait Shape {
    fn area(&self) -> f64;
    fn square(&self) -> f64 { self.area() * self.area() }
}

enum Mode { Soft, Hard(i32) }

mod tests {
    /* A block, not documentation. */
    #[test]
    fn works() { assert_eq!(1, 1); }
}

macro_rules! row { ($x:expr) => { $x }; }

/** Grows. */
pub const unsafe extern "C" fn größe(höhe: i32) -> i32 { höhe }

extern "C" { fn external(x: i32); }
