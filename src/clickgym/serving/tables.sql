-- The tables of a store. `COLUMNS` of offline/stores.py has their columns, too; a change of either is a new `VERSION` there.

CREATE TABLE settings (      -- what the store was made with
    name TEXT PRIMARY KEY,
    value,
    checksum INTEGER NOT NULL    -- of the other columns of the row, here and in each table
) WITHOUT ROWID;
CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    id NOT NULL UNIQUE,      -- the user's own: a text or an integer
    checksum INTEGER NOT NULL
);
CREATE TABLE queries (       -- each with its agent; number 0 is the agent of all queries where it ranks by features
    number INTEGER PRIMARY KEY,
    id UNIQUE,               -- the user's own; NULL for number 0
    capacity INTEGER,        -- L of the agent: slots for items, or candidates; NULL where number 0 ranks
    n_features INTEGER,      -- d of the agent; NULL where it sees none
    guarded INTEGER,         -- when the guard gave the query back to production: a tick; NULL if it did not
    checksum INTEGER NOT NULL
);
CREATE TABLE slots (         -- which item an agent's id stands for, from which impression on
    query INTEGER NOT NULL,
    since INTEGER NOT NULL,  -- a tick, that of an impression
    slot INTEGER NOT NULL,
    item INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (query, since, slot)
) WITHOUT ROWID;
CREATE TABLE impressions (
    number INTEGER PRIMARY KEY,  -- a tick: lists were shown in this order
    query INTEGER NOT NULL,
    shown INTEGER NOT NULL,      -- microseconds since 1970, UTC, by the clock of the machine
    source INTEGER NOT NULL,     -- of the list: 0 agent; by lot 1 agent, 2 production; 3 production, by the guard; 4 a log;
                                 -- 5 interleaved of the agent's and another; and 8 more, if the store was moved to
                                 -- another agent since
    share REAL,                  -- with which probability the lot would have chosen production; NULL without lot
    items BLOB NOT NULL,         -- (K,) int32, numbers of items; -1 below the end of a list of a log
    candidates BLOB,             -- which slots could be shown, a bit for each; with features (L,) int32, numbers of items
    features BLOB,               -- (L, d) float64; NULL where the agent sees none
    closed INTEGER,              -- as shown; NULL while it is open
    seen INTEGER,                -- how many positions were seen; NULL while it is open
    learned INTEGER,             -- a tick: agents learned in this order; NULL before
    checksum INTEGER NOT NULL
);
CREATE INDEX impressions_of_query ON impressions (query);
CREATE INDEX impressions_to_learn ON impressions (number) WHERE learned IS NULL;
CREATE TABLE clicks (
    impression INTEGER NOT NULL,
    position INTEGER NOT NULL,   -- from 1
    clicked INTEGER NOT NULL,    -- as shown
    late INTEGER NOT NULL,       -- 1 if the impression was closed before, so that no agent has learned from it
    checksum INTEGER NOT NULL,
    PRIMARY KEY (impression, position)
) WITHOUT ROWID;
CREATE TABLE interleaved (   -- whose the positions of a list are that was interleaved
    impression INTEGER PRIMARY KEY,
    note BLOB NOT NULL,          -- (K,) float64, the probability that a position is the agent's; NaN where it is nobody's
    checksum INTEGER NOT NULL
);
CREATE TABLE snapshots (     -- to make loading fast, never the truth: an agent is what a replay of the impressions makes of it
    query INTEGER PRIMARY KEY,
    tick INTEGER NOT NULL,   -- the last event that it has seen
    state BLOB NOT NULL,     -- a line of JSON, then the agent as `save` writes it
    checksum INTEGER NOT NULL
);
