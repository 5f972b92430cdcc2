-- A tree: what a summary stands for is the range of messages from first to last, or the summaries whose parent it is.
CREATE TABLE summaries (
    id TEXT PRIMARY KEY,
    session_no INTEGER NOT NULL,
    level INTEGER NOT NULL,
    first_root_seq INTEGER NOT NULL,
    first_place INTEGER NOT NULL,
    last_root_seq INTEGER NOT NULL,
    last_place INTEGER NOT NULL,
    content TEXT NOT NULL,
    parent_id TEXT,             -- none: the model reads it
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    created REAL NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_of_session ON summaries (session_no, first_root_seq, first_place);
