-- The database is folded from decisions.jsonl and can be rebuilt from it; its constraints are the protocol's promises.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- All cells of the matrix are rows from the first moment; one that left the campaign file stays, undeclared.
CREATE TABLE cell (
  id TEXT PRIMARY KEY,
  position INTEGER NOT NULL,
  job TEXT NOT NULL,
  axes TEXT NOT NULL,            -- JSON: [[axis, name, value], ...]
  declared INTEGER NOT NULL,
  hash TEXT NOT NULL,
  given_up TEXT,
  retry_because TEXT,
  stop_because TEXT
) WITHOUT ROWID;

CREATE TABLE attempt (
  cell TEXT NOT NULL REFERENCES cell (id),
  n INTEGER NOT NULL CHECK (n >= 1),
  token TEXT NOT NULL UNIQUE,
  epoch INTEGER NOT NULL,
  slots TEXT NOT NULL,           -- JSON
  hash TEXT NOT NULL,
  claimed_at TEXT NOT NULL,
  claimed_boot REAL NOT NULL,
  boot_id TEXT NOT NULL,
  retry_cause TEXT,
  adopted INTEGER NOT NULL DEFAULT 0,
  verdict TEXT CHECK (verdict IN ('DONE', 'DEAD')),
  outcome TEXT,                  -- JSON
  accepted TEXT,
  PRIMARY KEY (cell, n),
  CHECK (n = 1 OR retry_cause IS NOT NULL),               -- no restart without a recorded cause
  CHECK ((verdict IS NULL) = (outcome IS NULL))
) WITHOUT ROWID;

CREATE UNIQUE INDEX one_open_attempt ON attempt (cell) WHERE verdict IS NULL;
CREATE UNIQUE INDEX one_completed_attempt ON attempt (cell) WHERE verdict = 'DONE' OR accepted IS NOT NULL;

CREATE TRIGGER verdict_is_written_once BEFORE UPDATE OF verdict, outcome ON attempt
WHEN OLD.verdict IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'the verdict of an attempt is written once'); END;

CREATE TRIGGER attempt_is_kept BEFORE DELETE ON attempt
BEGIN SELECT RAISE(ABORT, 'attempts are never deleted'); END;

-- No second execution of finished work.
CREATE TRIGGER done_stays_done BEFORE INSERT ON attempt
WHEN EXISTS (SELECT 1 FROM attempt WHERE cell = NEW.cell AND (verdict = 'DONE' OR accepted IS NOT NULL))
BEGIN SELECT RAISE(ABORT, 'the cell is DONE already'); END;

-- Who decided what, when and why. `void` says why a decision had no effect.
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  boot REAL NOT NULL,
  who TEXT NOT NULL,
  epoch INTEGER,
  kind TEXT NOT NULL,
  cell TEXT,
  attempt INTEGER,
  reason TEXT NOT NULL,
  data TEXT NOT NULL,
  ref TEXT UNIQUE,
  void TEXT
);
CREATE INDEX event_of_cell ON event (cell) WHERE cell IS NOT NULL;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER event_is_final BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;

-- Which slot was leased for what, from the first day on: the ledger is computed from these.
CREATE TABLE span (
  slot TEXT NOT NULL,
  cell TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  began_at TEXT NOT NULL,
  began_boot REAL NOT NULL,
  ended_at TEXT,
  ended_boot REAL,
  PRIMARY KEY (slot, cell, attempt)
) WITHOUT ROWID;
