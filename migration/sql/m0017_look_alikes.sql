-- The skeleton (UTS 39) of a tax number: numbers that people cannot tell apart have the same one.
ALTER TABLE taxpayers ADD COLUMN tin_skeleton text NOT NULL DEFAULT '';
-- For letters and digits of ASCII this is what the program computes.
UPDATE taxpayers SET tin_skeleton = replace(replace(replace(tin_normal, '0', 'o'), '1', 'l'), 'i', 'l');
-- Look-alikes that are there already stay; only a further one is refused.
UPDATE taxpayers SET tin_skeleton = '' WHERE tin_skeleton IN
    (SELECT tin_skeleton FROM taxpayers GROUP BY tin_skeleton HAVING count(*) > 1);
CREATE UNIQUE INDEX taxpayers_by_tin_skeleton ON taxpayers (tin_skeleton) WHERE tin_skeleton <> '';
