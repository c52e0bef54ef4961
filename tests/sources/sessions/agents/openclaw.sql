PRAGMA user_version = 23;
CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY,
  current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL,
  legacy_acp_migration_json TEXT,
  entry_valid INTEGER NOT NULL DEFAULT 0 CHECK (entry_valid IN (-1, 0, 1)),
  updated_at INTEGER NOT NULL,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  created_at INTEGER,
  created_via TEXT CHECK (created_via IS NULL OR created_via IN ('operator', 'spawn', 'channel', 'cron', 'talk', 'run', 'plugin', 'internal')),
  created_actor_type TEXT CHECK (created_actor_type IS NULL OR created_actor_type IN ('human', 'agent', 'system')),
  created_actor_id TEXT,
  owner_actor_type TEXT,
  owner_actor_id TEXT,
  owner_assigned_by_type TEXT,
  owner_assigned_by_id TEXT,
  owner_assigned_at INTEGER,
  project_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  fork_source_session_key TEXT,
  fork_source_session_id TEXT,
  fork_source_entry_id TEXT,
  label TEXT,
  display_name TEXT,
  category TEXT,
  icon TEXT,
  pinned_at INTEGER,
  archived_at INTEGER,
  last_read_at INTEGER,
  last_interaction_at INTEGER,
  last_activity_at INTEGER
) STRICT;
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  previous_session_id TEXT,
  reason TEXT CHECK (reason IS NULL OR reason IN ('initial', 'reset', 'rollover', 'fork', 'rewind', 'switch', 'recovery', 'compaction')),
  session_scope TEXT NOT NULL DEFAULT 'conversation' CHECK (session_scope IN ('conversation', 'shared-main', 'group', 'channel')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER DEFAULT NULL,
  transcript_observed_at INTEGER DEFAULT NULL,
  session_entry_provenance INTEGER NOT NULL DEFAULT 0 CHECK (session_entry_provenance IN (0, 1)),
  acp_owned INTEGER NOT NULL DEFAULT 0 CHECK (acp_owned IN (0, 1)),
  plugin_owner_id TEXT,
  hook_external_content_source TEXT CHECK (hook_external_content_source IS NULL OR hook_external_content_source IN ('gmail', 'webhook')),
  started_at INTEGER,
  ended_at INTEGER,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  chat_type TEXT CHECK (chat_type IS NULL OR chat_type IN ('direct', 'group', 'channel')),
  channel TEXT,
  account_id TEXT,
  primary_conversation_id TEXT,
  model_provider TEXT,
  model TEXT,
  agent_harness_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  display_name TEXT,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE,
  FOREIGN KEY (primary_conversation_id) REFERENCES conversations(conversation_id) ON DELETE SET NULL
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  event_utf8_bytes INTEGER CHECK (event_utf8_bytes IS NULL OR event_utf8_bytes >= 0),
  navigation_json TEXT,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE,
  CHECK (
    (event_json IS NOT NULL AND event_zstd IS NULL)
    OR (
      event_json IS NULL AND event_zstd IS NOT NULL
      AND event_utf8_bytes IS NOT NULL
      AND event_utf8_bytes BETWEEN 1 AND 4194304
      AND length(event_zstd) BETWEEN 1 AND 4194304
      AND navigation_json IS NOT NULL
    )
  ),
  CHECK (
    navigation_json IS NULL OR CASE WHEN json_valid(navigation_json) THEN coalesce(
      octet_length(navigation_json) <= 16384
      AND json_type(navigation_json, '$.version') = 'integer'
      AND json_extract(navigation_json, '$.version') = 1
      AND json_type(navigation_json, '$.report') = 'object'
      AND json_extract(navigation_json, '$.report.kind') IN ('canonical', 'leaf', 'link', 'ignored')
      AND json_type(navigation_json, '$.navigation') = 'object'
      AND json_type(navigation_json, '$.reset') = 'object'
      AND json_type(navigation_json, '$.model') = 'object'
      AND json_type(navigation_json, '$.modelBytes') = 'integer'
      AND json_extract(navigation_json, '$.modelBytes') BETWEEN 0 AND 4194304
      AND json_type(navigation_json, '$.modelWithoutCheckpointBytes') = 'integer'
      AND json_extract(navigation_json, '$.modelWithoutCheckpointBytes') BETWEEN 0 AND 4194304
      AND json_type(navigation_json, '$.withoutCustomDataBytes') = 'integer'
      AND json_extract(navigation_json, '$.withoutCustomDataBytes') BETWEEN 0 AND 4194304,
      0) ELSE 0 END
  )
) STRICT;
INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1794853369544, 1794853369544);
INSERT INTO session_nodes VALUES ('agent:main:explicit:s1', 's1', '{"sessionId": "s1"}', NULL, 1, 1794853546850, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1794853546849, 1794853546849);
INSERT INTO session_windows VALUES ('s1', 'agent:main:explicit:s1', NULL, NULL, 'conversation', 1794853369852, 1794853546850, 1794853546640, 1794853546640, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'fake', 'fake', 'openclaw', NULL, NULL, NULL);
INSERT INTO transcript_events VALUES ('s1', 0, '{"type":"session","version":4,"id":"s1","timestamp":"2026-11-16T18:23:02.707Z","cwd":"/home/ana/.openclaw/workspace"}', 1794853382707, NULL, 117, NULL);
INSERT INTO transcript_events VALUES ('s1', 1, '{"type":"model_change","provider":"fake","modelId":"fake","id":"54bc7b8d-f7c0-4d46-a17a-abde9bf70219","parentId":null,"timestamp":"2026-11-16T18:23:02.719Z"}', 1794853382719, NULL, 157, NULL);
INSERT INTO transcript_events VALUES ('s1', 2, '{"type":"thinking_level_change","thinkingLevel":"medium","id":"150f5d60-ecfb-4a9e-8968-7cef84831c81","parentId":"54bc7b8d-f7c0-4d46-a17a-abde9bf70219","timestamp":"2026-11-16T18:23:04.423Z"}', 1794853384423, NULL, 190, NULL);
INSERT INTO transcript_events VALUES ('s1', 3, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1794853384645,"provider":"fake","modelApi":"openai-completions","modelId":"fake"},"id":"626649b3-cc95-416c-bf9c-84b0e0d2c3be","parentId":"150f5d60-ecfb-4a9e-8968-7cef84831c81","timestamp":"2026-11-16T18:23:04.651Z"}', 1794853384651, NULL, 282, NULL);
INSERT INTO transcript_events VALUES ('s1', 4, '{"type": "message", "id": "e18d56ad-5fb7-49bf-8a03-7564b22ea1d0", "parentId": "626649b3-cc95-416c-bf9c-84b0e0d2c3be", "timestamp": "2026-11-16T18:23:04.716Z", "message": {"role": "user", "content": "Which port does staging answer on? My token is @TOKEN@", "timestamp": 1794853370386, "__openclaw": {"senderIsOwner": true}, "idempotencyKey": "dba40ca6-1175-46ef-82d6-9c7d77933c14:user"}}', 1794853384716, NULL, 373, NULL);
INSERT INTO transcript_events VALUES ('s1', 5, '{"type": "message", "id": "d88005d0-5da2-4fe8-9e13-ea539e0dbb9b", "parentId": "e18d56ad-5fb7-49bf-8a03-7564b22ea1d0", "timestamp": "2026-11-16T18:23:04.807Z", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "Thinking about zanzibar before I answer.", "thinkingSignature": "reasoning_content"}, {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {"command": "echo quartz-output"}}], "api": "openai-completions", "provider": "fake", "model": "fake", "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}, "stopReason": "toolUse", "timestamp": 1794853384732, "responseId": "x", "openclawDelivery": {"textPhaseRequiresTerminal": true}, "__openclaw": {"runId": "9c826a82-afe3-4bd4-87c1-94e15fc91ee9"}}}', 1794853384807, NULL, 790, NULL);
INSERT INTO transcript_events VALUES ('s1', 6, '{"type": "message", "id": "050bb9b4-2617-45ce-b553-55b9829f129f", "parentId": "d88005d0-5da2-4fe8-9e13-ea539e0dbb9b", "timestamp": "2026-11-16T18:23:07.373Z", "message": {"role": "toolResult", "toolCallId": "call_1", "toolName": "exec", "content": [{"type": "text", "text": "quartz-output"}], "details": {"status": "completed", "exitCode": 0, "exitSignal": null, "exitReason": "exit", "durationMs": 1325, "aggregated": "quartz-output", "noOutputTimedOut": false, "cwd": "/home/ana/.openclaw/workspace"}, "isError": false, "timestamp": 1794853387342, "__openclaw": {"runId": "9c826a82-afe3-4bd4-87c1-94e15fc91ee9"}}}', 1794853387373, NULL, 572, NULL);
INSERT INTO transcript_events VALUES ('s1', 7, '{"type": "custom", "customType": "openclaw.cache-ttl", "data": {"prunedToolResults": [], "ambiguousToolResultBaseKeys": [], "frozenToolResults": [{"key": "tool:call_1:1794853387342", "sourceHash": "CyYCNUa7f4Wmmc_0EFV0xGzlh4SUz-ffrUeWBDw9s8s"}]}, "id": "d4c25d17-0c91-4c42-98a0-758b6a508b87", "parentId": "050bb9b4-2617-45ce-b553-55b9829f129f", "timestamp": "2026-11-16T18:23:07.507Z"}', 1794853387507, NULL, 366, NULL);
INSERT INTO transcript_events VALUES ('s1', 40, NULL, 1794853393094, x'28b52ffd648304b50a00f6564925108de801588c7b7fb00f77c214a9faf0c531e2d57541de6174dda2eddf5a5d1101000014083f0043003c00d14ff284ab37785d159aca9483c481aa2f900775bd1f4a3fc29333e37e444d9253a8d75daf2ffeecbd3e62ab4d40d4c7462f65c6e250de9ab24efda56a3b2510000ac737268cd7a491f022cf642082511008601a2c04391e8eb571b058a8164e3da22bc1db89cada176fcf45e95c23df8c8cb286e7a9963e396fa75efd83531ed475b835475e092f9b713951d675ab7d0b36f816766a9bd13da77e25be542050324eba8669adc519e573ac7113cea6698d992cc2f9da7cecc9a5e25aea19156778934938465da39231205b8c2dd898e6d425a86efd9064fbe2ec3af04ee79c3b7f6168e59212bfe5befe6ab681ec3174eab760473f55c9170f1100021241308d041341308d041341308d04d34830e903d3483011848946315c13148444b9dd3d21e4c42cb302060f536216', 1411, '{"version": 1, "report": {"kind": "canonical", "hasParentId": true, "entry": {"id": "43792abf-4626-4cad-a87b-791d68d8b22f", "parentId": "6fe165c2-eae3-4f88-8c6f-e9db339d6bd1", "timestamp": "2026-11-16T18:23:13.094Z", "type": "custom"}}, "navigation": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "43792abf-4626-4cad-a87b-791d68d8b22f", "parentId": "6fe165c2-eae3-4f88-8c6f-e9db339d6bd1", "timestamp": "2026-11-16T18:23:13.094Z"}, "reset": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "43792abf-4626-4cad-a87b-791d68d8b22f", "parentId": "6fe165c2-eae3-4f88-8c6f-e9db339d6bd1", "timestamp": "2026-11-16T18:23:13.094Z", "message": {"role": null}}, "model": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "43792abf-4626-4cad-a87b-791d68d8b22f", "parentId": "6fe165c2-eae3-4f88-8c6f-e9db339d6bd1", "timestamp": "2026-11-16T18:23:13.094Z"}, "modelBytes": 1411, "modelWithoutCheckpointBytes": 1411, "withoutCustomDataBytes": 184}');
INSERT INTO transcript_events VALUES ('s1', 504, '{"type":"thinking_level_change","thinkingLevel":"medium","id":"3b5f1e17-030c-4262-bc5b-2ca3b3ea45d5","parentId":"f9dc98e7-b856-4e4f-ace4-9d0fe0c3194c","timestamp":"2026-11-16T18:25:44.567Z"}', 1794853544567, NULL, 190, NULL);
INSERT INTO transcript_events VALUES ('s1', 505, '{"type":"custom","customType":"model-snapshot","data":{"timestamp":1794853545683,"provider":"fake","modelApi":"openai-completions","modelId":"fake"},"id":"d2b1accd-c9b4-4e39-9e02-4867472e9443","parentId":"3b5f1e17-030c-4262-bc5b-2ca3b3ea45d5","timestamp":"2026-11-16T18:25:45.743Z"}', 1794853545743, NULL, 282, NULL);
INSERT INTO transcript_events VALUES ('s1', 506, '{"type": "message", "id": "d6423258-4b18-49fa-8632-0e6bdfaf3e4c", "parentId": "d2b1accd-c9b4-4e39-9e02-4867472e9443", "timestamp": "2026-11-16T18:25:46.026Z", "message": {"role": "user", "content": "Which port does staging answer on? My token is @TOKEN@", "timestamp": 1794853534657, "__openclaw": {"senderIsOwner": true}, "idempotencyKey": "a31da00f-15dd-4db9-b142-f760cc3f3e1f:user"}}', 1794853546026, NULL, 373, NULL);
INSERT INTO transcript_events VALUES ('s1', 507, NULL, 1794853546151, x'28b52ffd64c51b15160016ae7e230075d301eabc378f5b7ed278d33a4c0600e04000307796ec26bbd38bbffaffffff7f2595005e005d00d4831008504812180aa5199180508ecac841884d1814580664b15028a51f8985810a9181e52c0eea4190204c66a2d664612aaae6ba7e9f7395ca03399569aa96b344248f4572e12cea431a993014114941a21e012a3365363a342ccf9a605c388baa2a194a7aa84c5344247d64309745e2aca77aa2355995aa6a240ee88100409e0af4215da688c9b24c15958196b3a48b48b548029faff789899ef8dcc9f99ccfcac96b9c77bcb97a9bccac67a88eab9ddb98fab88c8b8b68878b877c8b788bb8f7b6879e6a6b6869b6efc8f76dddbca8eb67aebc9cfdd7f8c9a78f6cf7f6cfca9e87db6ecdeba87be69a9f99cb8e93924579daababaac6e9ce8b9d9d7badadd6efa8dfede9cf98cdebc8a6b8a67faaae97768dccd6c7686d6ce7ffedf8aee6dee9ccdbbcc7d8bcd9668c6bb97b8b786b6bcdfaf8a89ee9d99d98cc8deb9da87f9cbab6c7a88d777cdac67a699cad1e25cbe2f600589d45c72f82afb96b180d97b32e96a7a2244b47b5260b5229290f25d260c91a4cf6e6a1bc367e1adaf862a272b49c1525541f12e6b9acc9e267b488f250aeb781fef9c6a1d706fa889bf543851c97b3a28e3529c12859d46b78450045130342052284c2e13988220c023c7cc4e271dda07ba992a379308aaf680b8098a8215c29d992faec71809324493a125030102c465130428010fcffea07c0ca834ea4a774da8dec14a7f788dfeb093f388711c5ec1f7b27f78f57923de14017d70fc3c333c3a86be95608c7e03aefd8723b6a4b38d0c51de2b37eea0046c84dafa71eb3fcb1b75e69c9add05077452bee996ede23fdb82f81bfb3696be70afdd8dafdc6a619beeb0368237b46db96f6d5178ef12bf7e68cded1217ca443b88beed6a85a682fed8096ed8346b3079a5ad1262c31b457e12b29f952ddc86322a04853fc03bd7d4862', 7365, '{"version": 1, "report": {"kind": "canonical", "hasParentId": true, "entry": {"id": "28c42185-6d9c-49c8-9a9c-571fafd02696", "parentId": "d6423258-4b18-49fa-8632-0e6bdfaf3e4c", "timestamp": "2026-11-16T18:25:46.151Z", "type": "custom"}}, "navigation": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "28c42185-6d9c-49c8-9a9c-571fafd02696", "parentId": "d6423258-4b18-49fa-8632-0e6bdfaf3e4c", "timestamp": "2026-11-16T18:25:46.151Z"}, "reset": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "28c42185-6d9c-49c8-9a9c-571fafd02696", "parentId": "d6423258-4b18-49fa-8632-0e6bdfaf3e4c", "timestamp": "2026-11-16T18:25:46.151Z", "message": {"role": null}}, "model": {"type": "custom", "customType": "openclaw.cache-ttl", "id": "28c42185-6d9c-49c8-9a9c-571fafd02696", "parentId": "d6423258-4b18-49fa-8632-0e6bdfaf3e4c", "timestamp": "2026-11-16T18:25:46.151Z"}, "modelBytes": 7365, "modelWithoutCheckpointBytes": 7365, "withoutCustomDataBytes": 184}');
INSERT INTO transcript_events VALUES ('s1', 508, '{"type": "message", "id": "951c4e31-ebf3-426d-b107-bd49baee27e5", "parentId": "28c42185-6d9c-49c8-9a9c-571fafd02696", "timestamp": "2026-11-16T18:25:46.596Z", "message": {"role": "assistant", "content": [{"type": "text", "text": "Staging answers on port 8443, behind the proxy birke."}], "api": "openai-completions", "provider": "fake", "model": "fake", "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}, "stopReason": "stop", "timestamp": 1794853546222, "responseId": "x", "__openclaw": {"runId": "510b9fac-b779-4ef1-b12f-a5ae0e45c2e3"}}}', 1794853546596, NULL, 605, NULL);
INSERT INTO transcript_events VALUES ('s1', 509, '{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1794853546632,"runId":"510b9fac-b779-4ef1-b12f-a5ae0e45c2e3","sessionId":"s1"},"id":"4c71df30-9f5e-4b51-a8ce-2ccac7b2a04d","parentId":"951c4e31-ebf3-426d-b107-bd49baee27e5","timestamp":"2026-11-16T18:25:46.632Z"}', 1794853546632, NULL, 296, NULL);
