-- A table.
CREATE TABLE app.keyboards (
  id INT PRIMARY KEY, -- the id
  name VARCHAR(20) DEFAULT 'soft'
);
/* Hides. */
CREATE OR REPLACE FUNCTION app.hide(view_id int, flags text = 'x') RETURNS boolean AS $$
BEGIN
  -- ask the system
  UPDATE keyboards SET shown = false WHERE id = view_id;
  RETURN true;
END;
$$ LANGUAGE plpgsql;
CREATE VIEW visible AS SELECT k.name, count(*) FROM keyboards k JOIN views v ON v.id = k.id WHERE k.shown GROUP BY 1;
CREATE INDEX idx ON keyboards (name);
CREATE TRIGGER t BEFORE INSERT ON keyboards FOR EACH ROW EXECUTE FUNCTION f();
INSERT INTO keyboards VALUES (1, 'a');
select * from größe where x = 'y';
WITH q AS (SELECT 1) SELECT * FROM q;
ALTER TABLE keyboards ADD COLUMN x int;
DELETE FROM keyboards;
UPDATE keyboards SET a = 1;
CREATE TYPE color AS ENUM ('red', 'green');
CREATE PROCEDURE p() LANGUAGE SQL AS $$ SELECT 1 $$;
DROP TABLE x;
