-- What a commit costs is the pages it changes, and nearly each B-tree it touches is one more.

-- A new row has its own seq as rev, by which it is found; only rows changed since need an index.
DROP INDEX messages_by_rev;
CREATE UNIQUE INDEX messages_by_rev ON messages (rev) WHERE rev != seq;

-- A post without an external id gives its message its own id. What has no message, or none any more, is known here
-- and by its tombstone.
CREATE TABLE refused (id TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO refused SELECT id, epoch FROM posts WHERE message_id IS NULL;
DROP TABLE posts;
CREATE INDEX removed_by_message ON removed (message_id);

CREATE TABLE steps_in_order (
    session_no INTEGER NOT NULL,
    root_seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    root_id TEXT NOT NULL,
    step TEXT NOT NULL,         -- JSON
    message_ids TEXT NOT NULL,  -- JSON
    PRIMARY KEY (session_no, root_seq, number)
) STRICT, WITHOUT ROWID;
INSERT INTO steps_in_order SELECT session_no, root_seq, number, root_id, step, message_ids FROM steps;
DROP TABLE steps;
ALTER TABLE steps_in_order RENAME TO steps;

-- A session has one open turn at most: what is counted of it stands in the session's own row, and is kept when it ends.
ALTER TABLE sessions ADD COLUMN turn_root INTEGER;                  -- seq of the root of the last turn
ALTER TABLE sessions ADD COLUMN turn_is_open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn_began REAL;
ALTER TABLE sessions ADD COLUMN turn_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn_spent_s REAL NOT NULL DEFAULT 0.0;
UPDATE sessions SET turn_root = o.root_seq, turn_is_open = 1, turn_began = t.began, turn_attempts = t.attempts,
    turn_steps = t.steps, turn_spent_s = t.spent_s
    FROM (
        SELECT session_no, min(root_seq) AS root_seq FROM messages
        WHERE status IN ('pending_agent', 'processing') AND root_seq IS NOT NULL GROUP BY session_no
    ) o JOIN turns t ON t.session_no = o.session_no AND t.root_seq = o.root_seq
    WHERE sessions.no = o.session_no;
ALTER TABLE turns RENAME TO ended_turns;
DELETE FROM ended_turns WHERE EXISTS (
    SELECT 1 FROM sessions WHERE no = session_no AND turn_is_open = 1 AND turn_root = root_seq
);
CREATE VIEW turns (session_no, root_seq, began, attempts, steps, spent_s) AS
    SELECT session_no, root_seq, began, attempts, steps, spent_s FROM ended_turns
    UNION ALL
    SELECT no, turn_root, turn_began, turn_attempts, turn_steps, turn_spent_s FROM sessions WHERE turn_is_open = 1;

-- Read once in a life of the agents, when a scan of the sessions does.
DROP INDEX sessions_worked_on;
