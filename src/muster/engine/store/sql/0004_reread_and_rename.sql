-- `reread`: what a proof said when it was read again under another `proof:` or `results:`; as JSON, the newest reading.
ALTER TABLE attempt ADD COLUMN reread TEXT;

-- `muster rename`: `born` is the cell that an attempt was started as, where its folder lies; NULL: the one it has now.
ALTER TABLE attempt ADD COLUMN born TEXT;
ALTER TABLE cell ADD COLUMN formerly TEXT NOT NULL DEFAULT '[]';  -- JSON: its names before, oldest first
ALTER TABLE cell ADD COLUMN same_as TEXT NOT NULL DEFAULT '{}';   -- JSON: old definition -> the same under the new name
