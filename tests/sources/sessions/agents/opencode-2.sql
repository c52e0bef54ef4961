-- The tables of opencode 2.0 as published; those of 1.x are still there, and no longer grow.
CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text, `directory` text NOT NULL, `title` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE TABLE `session_v2` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `workspace_id` text, `parent_id` text, `fork_session_id` text, `slug` text NOT NULL, `directory` text NOT NULL, `path` text, `title` text, `version` text NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_archived` integer);
CREATE TABLE `session_message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `type` text NOT NULL, `seq` integer NOT NULL, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
INSERT INTO session VALUES ('ses_old', 'global', NULL, '/home/ana/ledger', 'An older copy', 1, 1);
INSERT INTO session_v2 VALUES ('ses_1', 'global', NULL, NULL, NULL, 'cosmic-comet', '/home/ana/ledger', NULL, 'Staging port', '2.0.12', 1794853317082, 1794853320548, NULL);
INSERT INTO session_v2 VALUES ('ses_2', 'global', NULL, 'ses_1', NULL, 'a-helper', '/home/ana/ledger', NULL, 'Child', '2.0.12', 1794853317082, 1794853320548, NULL);
INSERT INTO session_message VALUES ('msg_0', 'ses_1', 'agent-switched', 0, 1794853317212, 1794853317212, '{"agent":"build"}');
INSERT INTO session_message VALUES ('msg_1', 'ses_1', 'user', 1, 1794853317212, 1794853317212, '{"text":"Which port does staging answer on? My token is @TOKEN@","files":[]}');
INSERT INTO session_message VALUES ('msg_2', 'ses_1', 'assistant', 2, 1794853319284, 1794853320382, '{"agent":"build","model":{"id":"fake","providerID":"fake"},"content":[{"type":"reasoning","text":"Thinking about zanzibar before I answer."},{"type":"tool","id":"call_1","name":"bash","state":{"status":"completed","input":{"command":"echo quartz-output"},"content":[{"type":"text","text":"quartz-output"}]}}]}');
INSERT INTO session_message VALUES ('msg_3', 'ses_1', 'synthetic', 3, 1794853319500, 1794853319500, '{"text":"<system-reminder>quartz</system-reminder>"}');
INSERT INTO session_message VALUES ('msg_4', 'ses_1', 'assistant', 4, 1794853320389, 1794853320510, '{"agent":"build","model":{"id":"fake","providerID":"fake"},"content":[{"type":"text","text":"Staging answers on port 8443, behind the proxy birke."}]}');
INSERT INTO session_message VALUES ('msg_5', 'ses_2', 'user', 0, 1794853320389, 1794853320510, '{"text":"a task for a helper"}');
