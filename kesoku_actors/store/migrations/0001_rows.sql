-- Every number in a `seq`, `rev` or `place` comes from meta.counter and is never given twice (M1).
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('counter', 0), ('epoch', 0), ('open', 0);

CREATE TABLE channels (
    chatbot_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    mode TEXT,                  -- none: the configured one
    last_seen TEXT,             -- external id of the last message stored or refused (M8)
    refusal_told REAL,          -- when people were last told that too many messages wait (B4)
    PRIMARY KEY (chatbot_id, channel_id)
) STRICT, WITHOUT ROWID;

-- Outlives clear and withdrawal: an external id seen once starts nothing ever again (M5).
CREATE TABLE seen (
    chatbot_id TEXT NOT NULL,
    external_id TEXT NOT NULL,
    message_id TEXT,            -- none: it was refused
    PRIMARY KEY (chatbot_id, external_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    chatbot_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created REAL NOT NULL,
    last_activity REAL NOT NULL,
    turns INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL DEFAULT '',
    self_started INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER,              -- with worker: the one whose commits are taken (C2)
    worker INTEGER
) STRICT;
CREATE UNIQUE INDEX sessions_one_open ON sessions (chatbot_id, channel_id) WHERE state = 'open';
CREATE INDEX sessions_worked_on ON sessions (no) WHERE worker IS NOT NULL;

-- root_seq and place are none while a message is not part of the history (O1).
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    rev INTEGER NOT NULL,
    session_no INTEGER NOT NULL,
    root_seq INTEGER,
    place INTEGER,
    id TEXT NOT NULL,
    external_id TEXT,
    sender TEXT NOT NULL,
    role TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    content TEXT NOT NULL,
    parent_id TEXT,
    root_id TEXT,
    timestamp REAL NOT NULL,
    metadata TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_by_id ON messages (id);
CREATE UNIQUE INDEX messages_by_rev ON messages (rev);
CREATE INDEX messages_history ON messages (session_no, root_seq, place) WHERE root_seq IS NOT NULL;
CREATE INDEX messages_open ON messages (session_no, seq) WHERE status IN ('pending_agent', 'processing');
CREATE INDEX messages_leaving ON messages (seq) WHERE status = 'pending';

-- One row per claimed root.
CREATE TABLE turns (
    session_no INTEGER NOT NULL,
    root_seq INTEGER NOT NULL,
    began REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    steps INTEGER NOT NULL DEFAULT 0,
    spent_s REAL NOT NULL DEFAULT 0.0,
    PRIMARY KEY (session_no, root_seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
    session_no INTEGER NOT NULL,
    root_seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    root_id TEXT NOT NULL,
    step TEXT NOT NULL,         -- JSON
    message_ids TEXT NOT NULL,  -- JSON
    PRIMARY KEY (session_no, root_seq, number)
) STRICT;

CREATE TABLE calls (
    id TEXT PRIMARY KEY,        -- the call's message
    session_no INTEGER NOT NULL,
    root_seq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,               -- staged (O3), with the next three
    content TEXT,
    duration_s REAL,
    metadata TEXT,
    published INTEGER NOT NULL DEFAULT 0,
    life TEXT,                  -- of the process that started it
    pid INTEGER,
    process_start REAL,
    expires REAL,
    decided_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_unpublished ON calls (session_no, root_seq, seq) WHERE published = 0;

CREATE TABLE stops (
    seq INTEGER PRIMARY KEY,
    session_no INTEGER NOT NULL,
    root_id TEXT,
    reason TEXT NOT NULL,
    requested REAL NOT NULL,
    forced INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX stops_of_session ON stops (session_no, done);

CREATE TABLE covers (
    stop_seq INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    ended TEXT,                 -- the status it ended with, or 'gone'; none: not yet
    PRIMARY KEY (stop_seq, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX covers_of_message ON covers (message_id) WHERE ended IS NULL;

-- What makes a commit sent again harmless (C10); kept while its worker may still send it.
CREATE TABLE commits (
    session_no INTEGER NOT NULL,
    id TEXT NOT NULL,
    turn_id TEXT,               -- the turn that runs after it
    message_ids TEXT NOT NULL,  -- JSON
    moved TEXT,                 -- why it was refused; none: it stands
    PRIMARY KEY (session_no, id)
) STRICT, WITHOUT ROWID;

-- The same for posts without an external id.
CREATE TABLE posts (
    id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    message_id TEXT             -- none: it was refused
) STRICT, WITHOUT ROWID;

CREATE TABLE chunks (
    message_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    content TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    nonce TEXT NOT NULL,
    remote_id TEXT,
    PRIMARY KEY (message_id, number)
) STRICT, WITHOUT ROWID;

-- Tombstones of deleted rows, for cursors (B1).
CREATE TABLE removed (
    rev INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    session_id TEXT NOT NULL
) STRICT;
