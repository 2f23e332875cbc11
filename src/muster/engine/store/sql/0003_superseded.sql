-- `muster redo`: a completed attempt that is run again stays, and counts no more. `superseded` is the person's reason.

ALTER TABLE attempt ADD COLUMN superseded TEXT;

DROP INDEX one_completed_attempt;
CREATE UNIQUE INDEX one_completed_attempt ON attempt (cell)
WHERE (verdict = 'DONE' OR accepted IS NOT NULL) AND superseded IS NULL;

DROP TRIGGER done_stays_done;
CREATE TRIGGER done_stays_done BEFORE INSERT ON attempt
WHEN EXISTS (
  SELECT 1 FROM attempt WHERE cell = NEW.cell AND (verdict = 'DONE' OR accepted IS NOT NULL) AND superseded IS NULL)
BEGIN SELECT RAISE(ABORT, 'the cell is DONE already'); END;

CREATE TRIGGER only_done_is_superseded BEFORE UPDATE OF superseded ON attempt
WHEN NEW.superseded IS NOT NULL AND OLD.verdict IS NOT 'DONE' AND OLD.accepted IS NULL
BEGIN SELECT RAISE(ABORT, 'only a completed attempt is superseded'); END;
