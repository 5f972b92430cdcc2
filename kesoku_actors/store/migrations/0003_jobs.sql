-- Calls that went on at their deadline (I8). A job's one notice is stored with its end, and never before the result of
-- its call: what ended earlier is `over` until that result is published.
CREATE TABLE jobs (
    session_no INTEGER NOT NULL,
    number INTEGER NOT NULL,    -- counts within the session
    call_id TEXT NOT NULL,
    root_seq INTEGER NOT NULL,
    title TEXT NOT NULL,
    output_file TEXT,           -- in the session's folder
    state TEXT NOT NULL,
    life TEXT NOT NULL,         -- of the process that runs it
    began REAL NOT NULL,
    ended REAL,
    ending TEXT,
    detail TEXT NOT NULL DEFAULT '',
    notice TEXT,                -- while it is `over`
    PRIMARY KEY (session_no, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_by_call ON jobs (call_id);
CREATE INDEX jobs_running ON jobs (life) WHERE state = 'running';

-- What a yes for the session would cover, as JSON; none: it cannot be given (T7).
ALTER TABLE calls ADD COLUMN parts TEXT;
CREATE INDEX calls_waiting ON calls (session_no, seq) WHERE state = 'waiting';

-- What a person has said yes to for the rest of the session (T7); an empty part is the tool as a whole.
CREATE TABLE grants (
    session_no INTEGER NOT NULL,
    tool TEXT NOT NULL,
    part TEXT NOT NULL,
    given_by TEXT NOT NULL,
    PRIMARY KEY (session_no, tool, part)
) STRICT, WITHOUT ROWID;
