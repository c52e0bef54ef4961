    -- Content hashes are kept as bytes (see `hash_kept`). No number of a row or a word is ever used twice.
    -- Settings, and the counters that the store keeps for itself (see `COUNTERS`).
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

    CREATE TABLE documents (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
        size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, synced_ns INTEGER NOT NULL, digest TEXT NOT NULL,
        name TEXT NOT NULL, title TEXT NOT NULL, date TEXT, evergreen INTEGER NOT NULL,
        importance REAL NOT NULL, pinned INTEGER NOT NULL, supersedes TEXT NOT NULL,
        tail TEXT NOT NULL -- where the source of a growing transcript stopped reading
    );
    CREATE INDEX documents_date ON documents (date);
    CREATE INDEX documents_name ON documents (name);
    CREATE TABLE chunks (
        row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL,
        content_hash BLOB NOT NULL, time TEXT, origin TEXT NOT NULL
    );
    CREATE INDEX chunks_document ON chunks (document);
    CREATE INDEX chunks_content_hash ON chunks (content_hash);
    CREATE INDEX chunks_time ON chunks (time) WHERE time IS NOT NULL;
    -- Links as they were written; their ends are resolved when they are followed.
    CREATE TABLE edges (
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE, kind TEXT NOT NULL,
        start_name TEXT NOT NULL, start_anchor TEXT NOT NULL, start_key TEXT NOT NULL,
        end_name TEXT NOT NULL, end_anchor TEXT NOT NULL, end_key TEXT NOT NULL
    );
    CREATE INDEX edges_document ON edges (document);
    CREATE INDEX edges_start ON edges (start_key);
    CREATE INDEX edges_end ON edges (end_key);

    -- Keywords: the number of each word, the words of each chunk by number, and postings in segments that are never
    -- changed, only replaced. The id of a page of postings has the number of its segment in its high bits. `dead` rows
    -- are deleted, but still in their segment.
    CREATE TABLE words (word TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE fields (row INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL, exact BLOB NOT NULL);
    CREATE TABLE dead (row INTEGER PRIMARY KEY);
    CREATE TABLE keyword_segments (
        id INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, count INTEGER NOT NULL, width INTEGER NOT NULL,
        checksum INTEGER NOT NULL, rows BLOB NOT NULL, lengths BLOB NOT NULL, keys BLOB NOT NULL, ends BLOB NOT NULL
    );
    CREATE TABLE postings (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, page BLOB NOT NULL);

    -- Vectors by content and model. A new one is in its row; many together move into a segment, and `slot` tells where.
    -- (In a table without row ids each vector would spill onto its own page: three times the bytes, and slow to load.)
    CREATE TABLE models (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dim INTEGER NOT NULL, changed INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE vectors (
        row INTEGER PRIMARY KEY, content_hash BLOB NOT NULL, model INTEGER NOT NULL REFERENCES models (id),
        vector BLOB NOT NULL, slot INTEGER, UNIQUE (model, content_hash)
    );
    CREATE INDEX vectors_loose ON vectors (model) WHERE slot IS NULL;
    CREATE TABLE vector_segments (
        id INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
        checksum INTEGER NOT NULL, scales BLOB NOT NULL, codes BLOB NOT NULL
    );
    -- Rows of chunks whose vector may have changed, so that a process that has vectors in memory need not load all of
    -- them again (row 0: all may have changed), and the slot of each row as of an entry of that log.
    CREATE TABLE vector_log (seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL);
    CREATE TABLE vector_maps (
        model INTEGER PRIMARY KEY REFERENCES models (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
        checksum INTEGER NOT NULL, rows BLOB NOT NULL, slots BLOB NOT NULL
    );
    CREATE TABLE refused (
        model INTEGER NOT NULL REFERENCES models (id), content_hash BLOB NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (model, content_hash)
    ) WITHOUT ROWID;

    -- Relations. Chunks are compared by form (a hash of what a text says), so that a hundred copies are one. Rows wait
    -- in `unjudged`, and leave it in the transaction that writes the result. A group is named by one of its forms: only
    -- a chunk with another form tells which group it `joined`. Conflicts are kept both ways, so that one index finds
    -- them. Traits belong to the row that had a form first; once that row is deleted, `forms` keeps its form.
    CREATE TABLE unjudged (row INTEGER PRIMARY KEY REFERENCES chunks (row) ON DELETE CASCADE);
    CREATE TABLE copies (
        row INTEGER PRIMARY KEY REFERENCES chunks (row) ON DELETE CASCADE,
        form BLOB NOT NULL, joined BLOB, standing TEXT NOT NULL, id TEXT NOT NULL,
        group_form BLOB GENERATED ALWAYS AS (coalesce(joined, form)) VIRTUAL
    );
    CREATE INDEX copies_form ON copies (form, standing DESC, id);
    CREATE INDEX copies_joined ON copies (joined, standing DESC, id) WHERE joined IS NOT NULL;
    CREATE TABLE forms (row INTEGER PRIMARY KEY, form BLOB NOT NULL);
    CREATE INDEX forms_form ON forms (form);
    CREATE TABLE traits (trait INTEGER, row INTEGER, PRIMARY KEY (trait, row)) WITHOUT ROWID;
    CREATE TABLE conflicts (one BLOB, other BLOB, PRIMARY KEY (one, other)) WITHOUT ROWID;
    CREATE TABLE replaced (
        target TEXT NOT NULL, part TEXT NOT NULL,
        row INTEGER NOT NULL REFERENCES chunks (row) ON DELETE CASCADE, PRIMARY KEY (target, part, row)
    ) WITHOUT ROWID;
    CREATE INDEX replaced_row ON replaced (row);

    -- No OR IGNORE in a trigger: an upsert outside it would override that. Nobody follows `vector_log` before there is a
    -- model.
    CREATE TRIGGER chunk_waits AFTER INSERT ON chunks BEGIN INSERT INTO unjudged VALUES (NEW.row); END;
    CREATE TRIGGER chunk_added AFTER INSERT ON chunks WHEN EXISTS (SELECT 1 FROM models) BEGIN
        INSERT INTO vector_log (row) VALUES (NEW.row);
    END;
    CREATE TRIGGER chunk_deleted AFTER DELETE ON chunks BEGIN INSERT INTO vector_log (row) VALUES (OLD.row); END;
    CREATE TRIGGER facts_changed AFTER UPDATE OF date, evergreen, pinned, source, supersedes ON documents
    WHEN (OLD.date, OLD.evergreen, OLD.pinned, OLD.source, OLD.supersedes)
        IS NOT (NEW.date, NEW.evergreen, NEW.pinned, NEW.source, NEW.supersedes) BEGIN
        INSERT INTO unjudged SELECT row FROM chunks WHERE document = NEW.id AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER vector_added AFTER INSERT ON vectors WHEN NEW.slot IS NULL BEGIN
        INSERT INTO unjudged SELECT row FROM chunks
            WHERE content_hash = NEW.content_hash AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER vector_logged AFTER INSERT ON vectors BEGIN
        INSERT INTO vector_log (row) SELECT row FROM chunks WHERE content_hash = NEW.content_hash;
    END;
    CREATE TRIGGER vector_moved AFTER UPDATE OF slot ON vectors BEGIN
        INSERT INTO vector_log (row) SELECT row FROM chunks WHERE content_hash = NEW.content_hash;
    END;
    CREATE TRIGGER first_copy_deleted AFTER DELETE ON copies
    WHEN (SELECT min(row) FROM copies WHERE form = OLD.form) > OLD.row
        AND NOT EXISTS (SELECT 1 FROM forms WHERE form = OLD.form) BEGIN
        INSERT INTO forms VALUES (OLD.row, OLD.form);
    END;
    CREATE TRIGGER last_copy_deleted AFTER DELETE ON copies
    WHEN NOT EXISTS (SELECT 1 FROM copies WHERE form = OLD.form) BEGIN
        DELETE FROM forms WHERE form = OLD.form;
        DELETE FROM conflicts WHERE (one, other) IN (SELECT other, one FROM conflicts WHERE one = OLD.form);
        DELETE FROM conflicts WHERE one = OLD.form;
        UPDATE meta SET value = value + 1 WHERE key = 'stale_forms';
    END;
