-- name: get_meta
SELECT value FROM meta WHERE key = ?;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: all_meta
SELECT key, value FROM meta;

-- name: add_event
INSERT INTO event (at, boot, who, epoch, kind, cell, attempt, reason, data, ref, void) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: became_of
SELECT void FROM event WHERE ref = ?;

-- name: events
-- Newest last; of one cell when it is given.
SELECT id, at, boot, who, epoch, kind, cell, attempt, reason, data, void FROM event
WHERE ?1 IS NULL OR cell = ?1 ORDER BY id;

-- name: has_decided
SELECT EXISTS (SELECT 1 FROM event WHERE kind = ? AND void IS NULL);

-- name: campaigns
-- Those that were taken in, newest first.
SELECT data FROM event WHERE kind = 'campaign' AND void IS NULL ORDER BY id DESC;

-- name: withdraw_all
UPDATE cell SET declared = 0;

-- name: declare_cell
INSERT INTO cell (id, position, job, axes, declared, hash) VALUES (?, ?, ?, ?, 1, ?)
ON CONFLICT (id) DO UPDATE SET position = excluded.position, job = excluded.job, axes = excluded.axes, declared = 1,
  hash = excluded.hash;

-- name: all_cells
SELECT id, position, job, axes, declared, hash, given_up, retry_because, stop_because, formerly,
  same_as FROM cell
ORDER BY declared DESC, position;

-- name: one_cell
SELECT id, position, job, axes, declared, hash, given_up, retry_because, stop_because, formerly,
  same_as FROM cell WHERE id = ?;

-- name: all_attempts
SELECT cell, n, token, epoch, slots, hash, claimed_at, claimed_boot, boot_id, retry_cause, adopted, outcome, accepted,
  superseded, reread, born FROM attempt ORDER BY cell, n;

-- name: attempts_of
SELECT cell, n, token, epoch, slots, hash, claimed_at, claimed_boot, boot_id, retry_cause, adopted, outcome, accepted,
  superseded, reread, born FROM attempt WHERE cell = ? ORDER BY n;

-- name: cells_with_open_or_done
SELECT DISTINCT cell.axes FROM cell JOIN attempt ON attempt.cell = cell.id
WHERE attempt.verdict IS NULL OR attempt.verdict = 'DONE' OR attempt.accepted IS NOT NULL;

-- name: claim
INSERT INTO attempt (cell, n, token, epoch, slots, hash, claimed_at, claimed_boot, boot_id, retry_cause, adopted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: settle
UPDATE attempt SET verdict = ?, outcome = ? WHERE cell = ? AND n = ?;

-- name: accept
UPDATE attempt SET accepted = ? WHERE cell = ? AND n = ? AND verdict = 'DEAD';

-- name: set_reread
UPDATE attempt SET reread = ? WHERE cell = ? AND n = ?;

-- name: supersede
UPDATE attempt SET superseded = ? WHERE cell = ? AND n = ?;

-- name: set_given_up
UPDATE cell SET given_up = ? WHERE id = ?;

-- name: set_retry
UPDATE cell SET retry_because = ? WHERE id = ?;

-- name: set_stop
UPDATE cell SET stop_because = ? WHERE id = ?;

-- name: begin_span
INSERT INTO span (slot, cell, attempt, boot_id, began_at, began_boot) VALUES (?, ?, ?, ?, ?, ?);

-- name: end_spans
-- A boot time says how long the slot was held only in the boot that it began in.
UPDATE span SET ended_at = :at, ended_boot = CASE
  WHEN :boot >= began_boot AND boot_id = coalesce(:boot_id, boot_id) THEN :boot END
WHERE cell = :cell AND attempt = :attempt AND ended_at IS NULL;

-- name: end_spans_of_slot
UPDATE span SET ended_at = ? WHERE slot = ? AND ended_at IS NULL;

-- name: spans
SELECT slot, cell, attempt, boot_id, began_at, began_boot, ended_at, ended_boot FROM span ORDER BY began_boot;

-- name: forget_meta
DELETE FROM meta WHERE key = ?;

-- name: copy_cell
-- A cell under another name, with all that was decided about it.
INSERT INTO cell (id, axes, formerly, position, job, declared, hash, given_up, retry_because, stop_because, same_as)
SELECT ?1, ?2, ?3, position, job, declared, hash, given_up, retry_because, stop_because, same_as FROM cell WHERE id = ?4;

-- name: move_attempts
-- Their folders keep the name that they were started under.
UPDATE attempt SET cell = :new, born = nullif(coalesce(born, cell), :new) WHERE cell = :old;

-- name: move_spans
UPDATE span SET cell = ? WHERE cell = ?;

-- name: forget_cell
-- Only one without attempts can be forgotten: they refer to it.
DELETE FROM cell WHERE id = ?;

-- name: set_same_as
UPDATE cell SET same_as = ? WHERE id = ?;

-- name: born_elsewhere
SELECT DISTINCT born, cell FROM attempt WHERE born IS NOT NULL;

-- name: former_names
SELECT id, formerly FROM cell WHERE formerly != '[]';
