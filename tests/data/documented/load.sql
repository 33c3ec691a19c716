-- Reads the file.
CREATE FUNCTION load(p text) RETURNS int AS $$
  SELECT 1
  FROM a;
$$ LANGUAGE sql;
