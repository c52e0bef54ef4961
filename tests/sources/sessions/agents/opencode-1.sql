CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `session_message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `type` text NOT NULL,
          `seq` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO project VALUES ('global', '/', NULL, NULL, NULL, NULL, NULL, 1794853316346, 1794853316346, NULL, '[]', NULL);
INSERT INTO session VALUES ('ses_e1a67d625ffeFyzcAIuebpadop', 'global', NULL, NULL, 'cosmic-comet', '/home/ana/ledger', 'home/ana/ledger', 'Staging port', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.0, 20, 10, 0, 0, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"fake","providerID":"fake","variant":"default"}', 1794853317082, 1794853320548, NULL, NULL);
INSERT INTO message VALUES ('msg_1e5982a5c001PjvghRdQH60Hee', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853317212, 1794853320447, '{"role":"user","time":{"created":1794853317212},"agent":"build","model":{"providerID":"fake","modelID":"fake"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_1e5983274001mpJb81Klzmbv3k', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853319284, 1794853320382, '{"parentID": "msg_1e5982a5c001PjvghRdQH60Hee", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/ledger", "root": "/"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "fake", "providerID": "fake", "time": {"created": 1794853319284, "completed": 1794853320381}, "finish": "tool-calls"}');
INSERT INTO message VALUES ('msg_1e59836c5001TakCoub86uWS1b', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853320389, 1794853320510, '{"parentID": "msg_1e5982a5c001PjvghRdQH60Hee", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/ledger", "root": "/"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "fake", "providerID": "fake", "time": {"created": 1794853320389, "completed": 1794853320509}, "finish": "stop"}');
INSERT INTO part VALUES ('prt_1e5982a64001T1CiQjjknkYRkV', 'msg_1e5982a5c001PjvghRdQH60Hee', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853319265, 1794853319268, '{"type":"text","text":"\"Which port does staging answer on? My token is @TOKEN@\""}');
INSERT INTO part VALUES ('prt_1e59834e90017hHGbVgU2kUq7b', 'msg_1e5983274001mpJb81Klzmbv3k', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853319913, 1794853319923, '{"type":"step-start"}');
INSERT INTO part VALUES ('prt_1e5983503001ioFL6CQi0aiXBt', 'msg_1e5983274001mpJb81Klzmbv3k', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853319939, 1794853319952, '{"type":"reasoning","text":"Thinking about zanzibar before I answer.","time":{"start":1794853319939,"end":1794853319946}}');
INSERT INTO part VALUES ('prt_1e59835150018uJoe2np0ustdd', 'msg_1e5983274001mpJb81Klzmbv3k', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853319957, 1794853320364, '{"type": "tool", "tool": "bash", "callID": "call_1", "state": {"status": "completed", "input": {"command": "echo quartz-output", "description": "say it"}, "output": "quartz-output\n", "metadata": {"output": "quartz-output\n", "exit": 0, "truncated": false}, "title": "echo quartz-output", "time": {"start": 1794853319967, "end": 1794853320360}}}');
INSERT INTO part VALUES ('prt_1e59836b3001DPMPoy4Ukdlipw', 'msg_1e5983274001mpJb81Klzmbv3k', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853320371, 1794853320372, '{"reason":"tool-calls","type":"step-finish","tokens":{"total":15,"input":10,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_1e5983719001dPweo7nPbW163V', 'msg_1e59836c5001TakCoub86uWS1b', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853320473, 1794853320474, '{"type":"step-start"}');
INSERT INTO part VALUES ('prt_1e5983727001exwD90ZAFS94D2', 'msg_1e59836c5001TakCoub86uWS1b', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853320487, 1794853320497, '{"type":"text","text":"Staging answers on port 8443, behind the proxy birke.","time":{"start":1794853320487,"end":1794853320496}}');
INSERT INTO part VALUES ('prt_1e59837320017q7hxq5QkJt6v7', 'msg_1e59836c5001TakCoub86uWS1b', 'ses_e1a67d625ffeFyzcAIuebpadop', 1794853320499, 1794853320503, '{"reason":"stop","type":"step-finish","tokens":{"total":15,"input":10,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
