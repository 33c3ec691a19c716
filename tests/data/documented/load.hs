-- | Reads the file.
--
-- More.
load :: String -> Int
load p =
  let x = open p
  in x
