{-# LANGUAGE Foo #-}
module App.Keyboard (hide) where
import qualified Data.Map as M
-- | A row.
data Keyboard a = Keyboard { keys :: [a], size :: Int } | Empty deriving Show
newtype N = N Int
type Alias = Int
class Shape a where
  -- | Area.
  area :: a -> Double
  square :: a -> Double
  square x = area x * area x
instance Shape (Keyboard a) where
  area _ = 1
-- | Hides.
--   More.
hide :: View -> Int -> IO Bool
hide view 0 = return False
hide view flags
  | flags > 1 = do
      -- ask the system
      m <- service "input" maxSize
      let inner a = a + 1
      return $ hideView m (view `at` 1) 'c' "text"
  | otherwise = helper (\x -> x) where
      helper y = y
(<+>) :: Int -> Int -> Int
a <+> b = a + b
x |> f = f x
größe höhe = höhe
main = putStrLn "x"
constant :: Int
constant = 3
