"""The numbered migrations of the SQLite index. Append, never edit: `user_version` counts those that ran."""

from __future__ import annotations

APPLICATION_ID = 0x7265636F  # "reco"

# The terms are made by our own analyser; the tokenizer only has to split at spaces and to keep the rest as it is.
_TOKENIZE = "ascii tokenchars '_.-/:@+#'"

MIGRATIONS = (
    f"""
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO meta VALUES ('generation', 0);
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        source TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        synced_ns INTEGER NOT NULL,
        digest TEXT NOT NULL,
        name TEXT NOT NULL,
        title TEXT NOT NULL,
        date TEXT,
        evergreen INTEGER NOT NULL,
        importance REAL NOT NULL,
        pinned INTEGER NOT NULL,
        supersedes TEXT NOT NULL
    );
    CREATE INDEX documents_date ON documents (date);
    CREATE INDEX documents_name ON documents (name);
    CREATE TABLE chunks (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        start_line INTEGER NOT NULL,
        end_line INTEGER NOT NULL,
        heading TEXT NOT NULL,
        text TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        length INTEGER NOT NULL
    );
    CREATE INDEX chunks_document ON chunks (document);
    CREATE INDEX chunks_content_hash ON chunks (content_hash);
    CREATE VIRTUAL TABLE terms USING fts5 (head, body, exact, tokenize="{_TOKENIZE}");
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, row);
    CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dim INTEGER NOT NULL);
    CREATE TABLE vectors (
        content_hash TEXT NOT NULL,
        model INTEGER NOT NULL REFERENCES models (id),
        vector BLOB NOT NULL,
        PRIMARY KEY (content_hash, model)
    ) WITHOUT ROWID;
    """,
    # In a table without row ids a vector spills onto a page of its own: three times the bytes, and slow to load.
    """
    CREATE TABLE packed (
        row INTEGER PRIMARY KEY,
        content_hash TEXT NOT NULL,
        model INTEGER NOT NULL REFERENCES models (id),
        vector BLOB NOT NULL,
        UNIQUE (model, content_hash)
    );
    INSERT INTO packed (content_hash, model, vector) SELECT content_hash, model, vector FROM vectors;
    DROP TABLE vectors;
    ALTER TABLE packed RENAME TO vectors;
    """,
    # A passage may have a time and an origin of its own: the turns of a conversation do.
    """
    ALTER TABLE chunks ADD COLUMN time TEXT;
    ALTER TABLE chunks ADD COLUMN origin TEXT NOT NULL DEFAULT 'owner';
    CREATE INDEX chunks_time ON chunks (time) WHERE time IS NOT NULL;
    """,
    # What notes say of one another, as it was written: ends are resolved when they are walked. Notes that were read
    # before there were edges are read again.
    """
    CREATE TABLE edges (
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        start_name TEXT NOT NULL,
        start_anchor TEXT NOT NULL,
        start_key TEXT NOT NULL,
        end_name TEXT NOT NULL,
        end_anchor TEXT NOT NULL,
        end_key TEXT NOT NULL
    );
    CREATE INDEX edges_document ON edges (document);
    CREATE INDEX edges_start ON edges (start_key);
    CREATE INDEX edges_end ON edges (end_key);
    DELETE FROM meta WHERE key = 'analysis';
    """,
    # Generations: which model answers (`meta.model`), counters that tell a search what of its memory is out of date
    # (a model that fills in must not make the one that answers load its vectors again), and texts a model refused.
    """
    ALTER TABLE models ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    INSERT OR IGNORE INTO meta VALUES ('chunks', 0);
    INSERT OR IGNORE INTO meta SELECT 'model', name FROM models m
        WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.model = m.id)
        ORDER BY (SELECT count(*) FROM vectors v WHERE v.model = m.id) DESC LIMIT 1;
    CREATE TABLE refused (
        model INTEGER NOT NULL REFERENCES models (id),
        content_hash TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (model, content_hash)
    ) WITHOUT ROWID;
    """,
    # What passages are to each other. Judged by form (a hash of what a text says), so that a hundred copies are one;
    # rows wait in `unjudged`, which the triggers fill, and leave it in the transaction that writes what was found.
    # (No OR IGNORE in a trigger: an upsert outside it would override that.)
    """
    CREATE TABLE unjudged (row INTEGER PRIMARY KEY REFERENCES chunks (row) ON DELETE CASCADE);
    INSERT INTO unjudged SELECT row FROM chunks;
    CREATE TABLE copies (
        row INTEGER PRIMARY KEY REFERENCES chunks (row) ON DELETE CASCADE,
        form BLOB NOT NULL,
        kin BLOB NOT NULL,
        standing TEXT NOT NULL,
        id TEXT NOT NULL
    );
    CREATE INDEX copies_form ON copies (form);
    CREATE INDEX copies_kin ON copies (kin, standing DESC, id);
    CREATE TABLE traits (trait INTEGER, since INTEGER, form BLOB, PRIMARY KEY (trait, since, form)) WITHOUT ROWID;
    CREATE INDEX traits_form ON traits (form);
    CREATE TABLE conflicts (one BLOB, other BLOB, PRIMARY KEY (one, other)) WITHOUT ROWID;
    CREATE INDEX conflicts_other ON conflicts (other);
    CREATE TABLE replaced (
        target TEXT NOT NULL,
        part TEXT NOT NULL,
        row INTEGER NOT NULL REFERENCES chunks (row) ON DELETE CASCADE,
        PRIMARY KEY (target, part, row)
    ) WITHOUT ROWID;
    CREATE INDEX replaced_row ON replaced (row);
    CREATE TRIGGER chunk_waits AFTER INSERT ON chunks BEGIN
        INSERT INTO unjudged SELECT NEW.row WHERE NEW.row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER facts_changed AFTER UPDATE OF date, evergreen, pinned, source, supersedes ON documents
    WHEN (OLD.date, OLD.evergreen, OLD.pinned, OLD.source, OLD.supersedes)
        IS NOT (NEW.date, NEW.evergreen, NEW.pinned, NEW.source, NEW.supersedes) BEGIN
        INSERT INTO unjudged SELECT row FROM chunks WHERE document = NEW.id AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER vector_came AFTER INSERT ON vectors BEGIN
        INSERT INTO unjudged SELECT row FROM chunks
            WHERE content_hash = NEW.content_hash AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER last_copy_gone AFTER DELETE ON copies
    WHEN NOT EXISTS (SELECT 1 FROM copies WHERE form = OLD.form) BEGIN
        DELETE FROM traits WHERE form = OLD.form;
        DELETE FROM conflicts WHERE one = OLD.form OR other = OLD.form;
    END;
    """,
    # A transcript grows: where its source stopped reading is kept beside it.
    "ALTER TABLE documents ADD COLUMN tail TEXT NOT NULL DEFAULT '';",
    # Vectors of a byte a dimension; the store itself makes them of the floats that are here. New ones stand in rows of
    # `vectors`, many together in `segments`, and their rows say where (`place`). `moved` counts rows whose vector may
    # have changed, so that who has them in memory need not load them all again (row 0: all of them), and `packs` map
    # rows to places as of an entry of it.
    """
    ALTER TABLE vectors ADD COLUMN place INTEGER;
    CREATE INDEX vectors_loose ON vectors (model) WHERE place IS NULL;
    CREATE TABLE moved (seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL);
    CREATE TABLE packs (
        model INTEGER PRIMARY KEY REFERENCES models (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        rows BLOB NOT NULL,
        places BLOB NOT NULL
    );
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY,
        model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
        checksum INTEGER NOT NULL,
        scales BLOB NOT NULL,
        codes BLOB NOT NULL
    );
    CREATE INDEX segments_model ON segments (model);
    DROP TRIGGER vector_came;
    CREATE TRIGGER vector_came AFTER INSERT ON vectors WHEN NEW.place IS NULL BEGIN
        INSERT INTO unjudged SELECT row FROM chunks
            WHERE content_hash = NEW.content_hash AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER vector_noted AFTER INSERT ON vectors BEGIN
        INSERT INTO moved (row) SELECT row FROM chunks WHERE content_hash = NEW.content_hash;
    END;
    CREATE TRIGGER vector_moved AFTER UPDATE OF place ON vectors BEGIN
        INSERT INTO moved (row) SELECT row FROM chunks WHERE content_hash = NEW.content_hash;
    END;
    CREATE TRIGGER chunk_came AFTER INSERT ON chunks BEGIN INSERT INTO moved (row) VALUES (NEW.row); END;
    CREATE TRIGGER chunk_went AFTER DELETE ON chunks BEGIN INSERT INTO moved (row) VALUES (OLD.row); END;
    """,
    # Words by number, the words of each chunk, and postings in segments that are never changed, only replaced (pages of
    # a segment have its number in their id). No number of a row or word is ever used twice: `rows` and `words` are the
    # last that were given. Rows up to `sealed` are in segments; `dead` are gone but not yet out of their segment.
    # `epoch` counts how often words were dropped.
    """
    CREATE TABLE words (word TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE fields (row INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL, exact BLOB NOT NULL);
    CREATE TABLE dead (row INTEGER PRIMARY KEY);
    CREATE TABLE lists (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        first INTEGER NOT NULL,
        count INTEGER NOT NULL,
        width INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        rows BLOB NOT NULL,
        lengths BLOB NOT NULL,
        keys BLOB NOT NULL,
        ends BLOB NOT NULL
    );
    CREATE TABLE postings (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, page BLOB NOT NULL);
    INSERT INTO fields SELECT rowid, numbered(head), numbered(body), numbered(exact) FROM terms ORDER BY rowid;
    INSERT INTO words SELECT value, key + 1 FROM json_each(numbered_words()) ORDER BY 1;
    INSERT INTO meta SELECT 'words', count(*) FROM words;
    INSERT INTO meta VALUES ('epoch', 0);
    INSERT INTO meta SELECT 'rows', coalesce(max(row), 0) FROM chunks;
    INSERT INTO meta VALUES ('sealed', 0);
    DROP TABLE vocabulary;
    DROP TABLE terms;
    ALTER TABLE chunks DROP COLUMN length;
    """,
    # A form is written once and named by the row that had it first, which no other row is ever called: not with each of
    # its traits, twice. Traits of a form that went are passed over by whoever looks, and go many at once (`stale`).
    """
    CREATE TABLE forms (row INTEGER PRIMARY KEY, form BLOB NOT NULL);
    INSERT OR IGNORE INTO forms SELECT DISTINCT since, form FROM traits ORDER BY since;
    CREATE INDEX forms_form ON forms (form);
    CREATE TABLE slim (trait INTEGER, row INTEGER, PRIMARY KEY (trait, row)) WITHOUT ROWID;
    INSERT OR IGNORE INTO slim SELECT trait, since FROM traits ORDER BY trait, since;
    DROP TRIGGER last_copy_gone;
    DROP TABLE traits;
    ALTER TABLE slim RENAME TO traits;
    INSERT OR REPLACE INTO meta VALUES ('stale', 0);
    CREATE TRIGGER last_copy_gone AFTER DELETE ON copies
    WHEN NOT EXISTS (SELECT 1 FROM copies WHERE form = OLD.form) BEGIN
        DELETE FROM forms WHERE form = OLD.form;
        DELETE FROM conflicts WHERE one = OLD.form OR other = OLD.form;
        UPDATE meta SET value = value + 1 WHERE key = 'stale';
    END;
    """,
    # Postings in pieces that fill a page of the file each; all are made again from the words of the passages.
    """
    DELETE FROM lists;
    DELETE FROM postings;
    DELETE FROM dead;
    UPDATE meta SET value = 0 WHERE key = 'sealed';
    """,
    # Fewer bytes for each passage. Hashes of contents are bytes, no longer digits (of `vectors` the digits can still be
    # read), traits are cut to 32 bits, segments of words and maps of vectors are made again in a shorter form. `forms`
    # names only forms whose first row is gone; else the form of a row is in `copies`. A group is called by one of its
    # forms: only what has another one says which group it `joined`. Conflicts stand there both ways, so that one index
    # finds them. Nobody follows `moved` before there is a model, and a row that is new does not wait yet.
    """
    DROP TRIGGER vector_came;
    DROP TRIGGER vector_noted;
    DROP TRIGGER vector_moved;
    DROP TRIGGER chunk_came;
    DROP TRIGGER chunk_waits;
    DROP TRIGGER last_copy_gone;
    DROP INDEX segments_model;
    DROP INDEX conflicts_other;
    UPDATE chunks SET content_hash = unhex(content_hash)
        WHERE typeof(content_hash) = 'text' AND length(content_hash) = 32 AND content_hash NOT GLOB '*[^0-9a-f]*';
    ALTER TABLE vectors RENAME COLUMN content_hash TO hash;
    UPDATE vectors SET hash = unhex(hash)
        WHERE typeof(hash) = 'text' AND length(hash) = 32 AND hash NOT GLOB '*[^0-9a-f]*';
    ALTER TABLE vectors ADD COLUMN content_hash TEXT
        GENERATED ALWAYS AS (CASE typeof(hash) WHEN 'blob' THEN lower(hex(hash)) ELSE hash END) VIRTUAL;
    UPDATE refused SET content_hash = unhex(content_hash)
        WHERE length(content_hash) = 32 AND content_hash NOT GLOB '*[^0-9a-f]*';
    CREATE TABLE slim (trait INTEGER, row INTEGER, PRIMARY KEY (trait, row)) WITHOUT ROWID;
    INSERT OR IGNORE INTO slim SELECT (trait & 4294967295) - 2147483648, row FROM traits ORDER BY 1, 2;
    DROP TABLE traits;
    ALTER TABLE slim RENAME TO traits;
    DELETE FROM forms WHERE EXISTS (SELECT 1 FROM copies c WHERE c.row = forms.row AND c.form = forms.form);
    CREATE TABLE narrow (
        row INTEGER PRIMARY KEY REFERENCES chunks (row) ON DELETE CASCADE,
        form BLOB NOT NULL,
        joined BLOB,
        standing TEXT NOT NULL,
        id TEXT NOT NULL,
        kin BLOB GENERATED ALWAYS AS (coalesce(joined, form)) VIRTUAL
    );
    INSERT INTO narrow SELECT row, form, nullif(kin, form), standing, id FROM copies;
    DROP TABLE copies;
    ALTER TABLE narrow RENAME TO copies;
    CREATE INDEX copies_form ON copies (form, standing DESC, id);
    CREATE INDEX copies_kin ON copies (joined, standing DESC, id) WHERE joined IS NOT NULL;
    DELETE FROM packs;
    DELETE FROM lists;
    DELETE FROM postings;
    DELETE FROM dead;
    UPDATE meta SET value = 0 WHERE key = 'sealed';
    CREATE TRIGGER vector_came AFTER INSERT ON vectors WHEN NEW.place IS NULL BEGIN
        INSERT INTO unjudged SELECT row FROM chunks
            WHERE content_hash = NEW.hash AND row NOT IN (SELECT row FROM unjudged);
    END;
    CREATE TRIGGER vector_noted AFTER INSERT ON vectors BEGIN
        INSERT INTO moved (row) SELECT row FROM chunks WHERE content_hash = NEW.hash;
    END;
    CREATE TRIGGER vector_moved AFTER UPDATE OF place ON vectors BEGIN
        INSERT INTO moved (row) SELECT row FROM chunks WHERE content_hash = NEW.hash;
    END;
    CREATE TRIGGER chunk_came AFTER INSERT ON chunks WHEN EXISTS (SELECT 1 FROM models) BEGIN
        INSERT INTO moved (row) VALUES (NEW.row);
    END;
    CREATE TRIGGER chunk_waits AFTER INSERT ON chunks BEGIN INSERT INTO unjudged VALUES (NEW.row); END;
    CREATE TRIGGER first_copy_gone AFTER DELETE ON copies
    WHEN (SELECT min(row) FROM copies WHERE form = OLD.form) > OLD.row
        AND NOT EXISTS (SELECT 1 FROM forms WHERE form = OLD.form) BEGIN
        INSERT INTO forms VALUES (OLD.row, OLD.form);
    END;
    CREATE TRIGGER last_copy_gone AFTER DELETE ON copies
    WHEN NOT EXISTS (SELECT 1 FROM copies WHERE form = OLD.form) BEGIN
        DELETE FROM forms WHERE form = OLD.form;
        DELETE FROM conflicts WHERE (one, other) IN (SELECT other, one FROM conflicts WHERE one = OLD.form);
        DELETE FROM conflicts WHERE one = OLD.form;
        UPDATE meta SET value = value + 1 WHERE key = 'stale';
    END;
    """,
)
