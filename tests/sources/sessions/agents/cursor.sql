-- The tables of Cursor 3.1 as published.
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER, lastUpdatedAt INTEGER, isSubagent INTEGER DEFAULT 0, value TEXT);
INSERT INTO composerHeaders VALUES ('c0ffee01', 'w1', 1794853317000, 1794853320548, 0, '{"type":"head","composerId":"c0ffee01","name":"Staging port","createdAt":1794853317000,"lastUpdatedAt":1794853320548,"unifiedMode":"agent","workspaceIdentifier":{"id":"w1","uri":{"fsPath":"/home/ana/ledger","scheme":"file"}}}');
INSERT INTO composerHeaders VALUES ('c0ffee02', 'w2', 1794853317000, 1794853320548, 0, '{"type":"head","composerId":"c0ffee02","name":"Elsewhere","createdAt":1794853317000,"lastUpdatedAt":1794853320548,"workspaceIdentifier":{"id":"w2","uri":{"fsPath":"/home/ana/other"}}}');
INSERT INTO cursorDiskKV VALUES ('composerData:c0ffee01', '{"_v":3,"composerId":"c0ffee01","status":"completed","fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2},{"bubbleId":"b3","type":2},{"bubbleId":"b4","type":2}]}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee01:b1', '{"_v":3,"type":1,"bubbleId":"b1","text":"Which port does staging answer on? My token is @TOKEN@","createdAt":"2026-11-16T18:21:57.212Z"}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee01:b2', '{"_v":3,"type":2,"bubbleId":"b2","text":"Thinking about zanzibar before I answer.","capabilityType":30,"thinking":{"text":"Thinking about zanzibar before I answer."},"createdAt":"2026-11-16T18:21:58.000Z"}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee01:b3', '{"_v":3,"type":2,"bubbleId":"b3","text":"","capabilityType":15,"toolFormerData":{"name":"run_terminal_cmd","params":"{\"command\":\"echo quartz-output\"}","result":"{\"output\":\"quartz-output\"}"},"createdAt":"2026-11-16T18:21:59.000Z"}');
INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee01:b4', '{"_v":3,"type":2,"bubbleId":"b4","text":"Staging answers on port 8443, behind the proxy birke.","createdAt":"2026-11-16T18:22:00.389Z"}');
INSERT INTO cursorDiskKV VALUES ('composerData:c0ffee02', '{"_v":3,"conversation":[{"type":1,"text":"elsewhere"}]}');
