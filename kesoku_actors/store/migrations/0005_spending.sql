-- What inferences cost, in US dollars, by the UTC day they began in (days since 1970): it outlives a clear.
CREATE TABLE spending (day INTEGER PRIMARY KEY, dollars REAL NOT NULL) STRICT;

-- Inferences that may still cost something: an estimate, until it is settled. One whose end nobody saw stays.
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    day INTEGER NOT NULL,
    dollars REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- The model that a person chose for a channel; none: the configured one.
ALTER TABLE channels ADD COLUMN llm TEXT;
