CREATE TABLE audit (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  at BIGINT NOT NULL,
  actor_kind VARCHAR(16) NOT NULL,
  actor_id INTEGER,
  actor_name TEXT NOT NULL,
  address VARCHAR(64),
  action VARCHAR(32) NOT NULL,
  object_kind VARCHAR(32),
  object_id INTEGER,
  object_name TEXT,
  changes JSON NOT NULL,
  words_folded TEXT NOT NULL
);
CREATE INDEX ix_audit_action_at_id ON audit (action, at, id);
CREATE INDEX ix_audit_actor ON audit (actor_kind, actor_id, at, id);
CREATE INDEX ix_audit_actor_kind_at_id ON audit (actor_kind, at, id);
CREATE INDEX ix_audit_at_id ON audit (at, id);
CREATE INDEX ix_audit_object ON audit (object_kind, object_id, at, id);
CREATE INDEX ix_audit_object_kind_at_id ON audit (object_kind, at, id);
CREATE TABLE cause_codes (
  id INTEGER NOT NULL,
  code VARCHAR(32) NOT NULL,
  CONSTRAINT pk_cause_codes PRIMARY KEY (id),
  CONSTRAINT uq_cause_codes_code UNIQUE (code)
);
CREATE TABLE changes (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  monitor_id BIGINT NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX ix_changes_at ON changes (at);
CREATE TABLE contacts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  name_folded TEXT NOT NULL,
  channels TEXT,
  quiet_start VARCHAR(5),
  quiet_end VARCHAR(5),
  quiet_zone VARCHAR(64) NOT NULL,
  is_default BOOLEAN NOT NULL,
  min_severity VARCHAR(8) NOT NULL,
  acknowledgements BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT uq_contacts_name_folded UNIQUE (name_folded)
);
CREATE TABLE counters (
  name VARCHAR(96) NOT NULL,
  window BIGINT NOT NULL,
  count INTEGER NOT NULL,
  CONSTRAINT pk_counters PRIMARY KEY (name, window)
);
CREATE TABLE domains (
  domain TEXT NOT NULL,
  expires_at BIGINT,
  asked_at BIGINT,
  source VARCHAR(8),
  note TEXT,
  CONSTRAINT pk_domains PRIMARY KEY (domain)
);
CREATE TABLE ended_agent_tokens (
  place VARCHAR(64) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  ended_at BIGINT NOT NULL,
  CONSTRAINT pk_ended_agent_tokens PRIMARY KEY (place)
);
CREATE INDEX ix_ended_agent_tokens_digest ON ended_agent_tokens (digest);
CREATE TABLE heartbeats (
  name VARCHAR(96) NOT NULL,
  location VARCHAR(64),
  at BIGINT NOT NULL,
  last_check_at BIGINT,
  ended_at BIGINT,
  version VARCHAR(32),
  clock_offset_ms BIGINT,
  checks_per_minute INTEGER,
  keys TEXT,
  CONSTRAINT pk_heartbeats PRIMARY KEY (name)
);
CREATE TABLE invitations (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  digest VARCHAR(64) NOT NULL,
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL,
  role VARCHAR(16) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT uq_invitations_digest UNIQUE (digest),
  CONSTRAINT uq_invitations_email_folded UNIQUE (email_folded)
);
CREATE TABLE left_out_failures (
  window BIGINT NOT NULL,
  event VARCHAR(32) NOT NULL,
  who VARCHAR(64) NOT NULL,
  number INTEGER NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  actor_kind VARCHAR(16) NOT NULL,
  address VARCHAR(64),
  object_name TEXT,
  object_id INTEGER,
  CONSTRAINT pk_left_out_failures PRIMARY KEY (window, event, who)
);
CREATE TABLE locations (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name VARCHAR(64) NOT NULL,
  label VARCHAR(80),
  carrier VARCHAR(16) DEFAULT 'local' NOT NULL,
  created_at BIGINT DEFAULT '0' NOT NULL,
  seen_at BIGINT,
  result_at BIGINT,
  silent_at BIGINT,
  silent_since BIGINT,
  token_digest VARCHAR(64),
  public_key VARCHAR(64),
  CONSTRAINT uq_locations_name UNIQUE (name)
);
CREATE UNIQUE INDEX ix_locations_token_digest ON locations (token_digest);
CREATE TABLE maintenance_windows (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  start_at BIGINT NOT NULL,
  end_at BIGINT NOT NULL,
  repeat TEXT NOT NULL,
  repeat_until BIGINT,
  zone VARCHAR(64) DEFAULT 'UTC' NOT NULL,
  tags TEXT DEFAULT '' NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE markers (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  link TEXT,
  tags TEXT NOT NULL,
  time BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX ix_markers_time ON markers (time);
CREATE TABLE monitors (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  name_folded TEXT NOT NULL,
  url TEXT NOT NULL,
  url_folded TEXT NOT NULL,
  interval INTEGER NOT NULL,
  alert_condition VARCHAR(32) NOT NULL,
  alert_text_lookup TEXT,
  request_method VARCHAR(8) NOT NULL,
  request_headers TEXT,
  request_auth_username TEXT,
  request_auth_password TEXT,
  request_body TEXT,
  cache_buster SMALLINT NOT NULL,
  ssl_alert_days SMALLINT,
  domain_alert_days SMALLINT,
  maintenance_start_at BIGINT,
  maintenance_end_at BIGINT,
  alerts TEXT,
  alert_lanes TEXT,
  timeout SMALLINT NOT NULL,
  accepted_statuses TEXT NOT NULL,
  follow_redirects BOOLEAN NOT NULL,
  verify_tls BOOLEAN NOT NULL,
  slow_after INTEGER,
  confirmations SMALLINT NOT NULL,
  tags TEXT NOT NULL,
  remind_after SMALLINT,
  quiet_start VARCHAR(5),
  quiet_end VARCHAR(5),
  quiet_zone VARCHAR(64) DEFAULT 'UTC' NOT NULL,
  location_rule VARCHAR(8) DEFAULT 'majority' NOT NULL,
  paused BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX ix_monitors_maintenance ON monitors (maintenance_start_at) WHERE maintenance_start_at IS NOT NULL;
CREATE INDEX ix_monitors_name_folded ON monitors (name_folded);
CREATE INDEX ix_monitors_paused ON monitors (id) WHERE paused = 1;
CREATE INDEX ix_monitors_url_folded ON monitors (url_folded);
CREATE TABLE people (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  email TEXT NOT NULL,
  email_folded TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  name TEXT,
  role VARCHAR(16) NOT NULL,
  time_zone VARCHAR(64) NOT NULL,
  theme VARCHAR(8) NOT NULL,
  disabled BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  last_login_at BIGINT,
  CONSTRAINT uq_people_email_folded UNIQUE (email_folded)
);
CREATE TABLE post_templates (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  state VARCHAR(16) NOT NULL,
  body TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE result_contexts (
  id INTEGER NOT NULL,
  digest VARCHAR(32) NOT NULL,
  data JSON NOT NULL,
  CONSTRAINT pk_result_contexts PRIMARY KEY (id),
  CONSTRAINT uq_result_contexts_digest UNIQUE (digest)
);
CREATE TABLE results (
  monitor_id BIGINT NOT NULL,
  at BIGINT NOT NULL,
  location_id SMALLINT NOT NULL,
  verdict SMALLINT NOT NULL,
  maintenance BOOLEAN NOT NULL,
  covers_s INTEGER,
  status_code SMALLINT,
  response_time INTEGER,
  dns INTEGER,
  connect INTEGER,
  tls INTEGER,
  ttfb INTEGER,
  download INTEGER,
  context_id INTEGER,
  cause_code_id SMALLINT,
  cause TEXT,
  CONSTRAINT pk_results PRIMARY KEY (monitor_id, at, location_id)
)
 WITHOUT ROWID;
CREATE TABLE rollups (
  monitor_id BIGINT NOT NULL,
  period INTEGER NOT NULL,
  start BIGINT NOT NULL,
  checks INTEGER NOT NULL,
  up_s INTEGER NOT NULL,
  down_s INTEGER NOT NULL,
  unknown_s INTEGER NOT NULL,
  maintenance_s INTEGER NOT NULL,
  degraded_s INTEGER DEFAULT '0' NOT NULL,
  response_count INTEGER NOT NULL,
  response_sum BIGINT NOT NULL,
  response_max INTEGER,
  histogram JSON,
  phases JSON,
  CONSTRAINT pk_rollups PRIMARY KEY (monitor_id, period, start)
)
 WITHOUT ROWID;
CREATE TABLE sent_forms (
  digest VARCHAR(64) NOT NULL,
  sent_at BIGINT NOT NULL,
  ended_at BIGINT,
  location TEXT,
  CONSTRAINT pk_sent_forms PRIMARY KEY (digest)
);
CREATE TABLE settings (
  name VARCHAR(64) NOT NULL,
  value TEXT,
  updated_at BIGINT NOT NULL,
  CONSTRAINT pk_settings PRIMARY KEY (name)
);
CREATE TABLE status_pages (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  slug VARCHAR(255) NOT NULL,
  description TEXT,
  visibility VARCHAR(16) NOT NULL,
  password_hash TEXT,
  password_turn INTEGER DEFAULT '0' NOT NULL,
  domain VARCHAR(253),
  show_urls BOOLEAN DEFAULT false NOT NULL,
  show_response_times BOOLEAN DEFAULT false NOT NULL,
  auto_post_after SMALLINT,
  zone VARCHAR(64) DEFAULT 'UTC' NOT NULL,
  theme VARCHAR(8) DEFAULT 'system' NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT uq_status_pages_slug UNIQUE (slug)
);
CREATE UNIQUE INDEX uq_status_pages_domain ON status_pages (domain);
CREATE TABLE used_hosts (
  host VARCHAR(255) NOT NULL,
  person_id INTEGER NOT NULL,
  used_at BIGINT NOT NULL,
  CONSTRAINT pk_used_hosts PRIMARY KEY (host, person_id)
);
CREATE TABLE wall_links (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  digest VARCHAR(64) NOT NULL,
  tag TEXT,
  zone VARCHAR(64) NOT NULL,
  server TEXT,
  created_by TEXT,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  CONSTRAINT uq_wall_links_digest UNIQUE (digest)
);
CREATE TABLE api_keys (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  prefix VARCHAR(16) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  name TEXT NOT NULL,
  scope VARCHAR(8) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  last_used_at BIGINT,
  revoked_at BIGINT,
  owner_id INTEGER,
  networks TEXT DEFAULT '' NOT NULL,
  tag TEXT,
  CONSTRAINT fk_api_keys_owner_id FOREIGN KEY(owner_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_api_keys_prefix UNIQUE (prefix)
);
CREATE INDEX ix_api_keys_owner_id ON api_keys (owner_id);
CREATE TABLE assignments (
  monitor_id INTEGER NOT NULL,
  location_id INTEGER NOT NULL,
  turn BIGINT NOT NULL,
  slot BIGINT,
  checked_at BIGINT,
  verdict SMALLINT,
  asked_at BIGINT,
  blind BOOLEAN NOT NULL,
  failures SMALLINT DEFAULT '0' NOT NULL,
  CONSTRAINT pk_assignments PRIMARY KEY (monitor_id, location_id),
  CONSTRAINT fk_assignments_location_id FOREIGN KEY(location_id) REFERENCES locations (id) ON DELETE CASCADE,
  CONSTRAINT fk_assignments_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE INDEX ix_assignments_location_id ON assignments (location_id);
CREATE TABLE authenticator_apps (
  person_id INTEGER NOT NULL,
  secret TEXT NOT NULL,
  used_step BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_authenticator_apps PRIMARY KEY (person_id),
  CONSTRAINT fk_authenticator_apps_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE
);
CREATE TABLE cancelled_events (
  status_page_id INTEGER NOT NULL,
  uid VARCHAR(128) NOT NULL,
  sequence INTEGER NOT NULL,
  name TEXT NOT NULL,
  start_at BIGINT NOT NULL,
  end_at BIGINT NOT NULL,
  cancelled_at BIGINT NOT NULL,
  CONSTRAINT pk_cancelled_events PRIMARY KEY (status_page_id, uid),
  CONSTRAINT fk_cancelled_events_status_page_id FOREIGN KEY(status_page_id) REFERENCES status_pages (id) ON DELETE CASCADE
);
CREATE TABLE devices (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  digest VARCHAR(64) NOT NULL,
  person_id INTEGER NOT NULL,
  last_used_at BIGINT NOT NULL,
  CONSTRAINT fk_devices_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_devices_digest_person_id UNIQUE (digest, person_id)
);
CREATE INDEX ix_devices_person_id ON devices (person_id);
CREATE TABLE half_logins (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  digest VARCHAR(64) NOT NULL,
  person_id INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT fk_half_logins_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_half_logins_digest UNIQUE (digest)
);
CREATE INDEX ix_half_logins_person_id ON half_logins (person_id);
CREATE TABLE incidents (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  monitor_id INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  acknowledged_at BIGINT,
  acknowledged_by TEXT,
  ended_at BIGINT,
  cause TEXT,
  cause_folded TEXT,
  cause_code VARCHAR(32),
  comment TEXT,
  evidence TEXT,
  by_hand BOOLEAN NOT NULL,
  classification VARCHAR(16),
  ending VARCHAR(16),
  seen_by JSON,
  reminded_at BIGINT,
  unwatched JSON,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT fk_incidents_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE INDEX ix_incidents_ended_at ON incidents (ended_at);
CREATE INDEX ix_incidents_monitor_started ON incidents (monitor_id, started_at);
CREATE INDEX ix_incidents_started_at ON incidents (started_at);
CREATE UNIQUE INDEX uq_incidents_open ON incidents (monitor_id) WHERE ended_at IS NULL;
CREATE TABLE late_outages (
  monitor_id INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  cause_code VARCHAR(32),
  cause TEXT,
  places TEXT NOT NULL,
  CONSTRAINT pk_late_outages PRIMARY KEY (monitor_id, started_at),
  CONSTRAINT fk_late_outages_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE TABLE maintenance_window_monitors (
  window_id INTEGER NOT NULL,
  monitor_id INTEGER NOT NULL,
  CONSTRAINT pk_maintenance_window_monitors PRIMARY KEY (window_id, monitor_id),
  CONSTRAINT fk_maintenance_window_monitors_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE,
  CONSTRAINT fk_maintenance_window_monitors_window_id FOREIGN KEY(window_id) REFERENCES maintenance_windows (id) ON DELETE CASCADE
);
CREATE INDEX ix_maintenance_window_monitors_monitor_id ON maintenance_window_monitors (monitor_id);
CREATE TABLE monitor_contacts (
  monitor_id INTEGER NOT NULL,
  contact_id INTEGER NOT NULL,
  position SMALLINT NOT NULL,
  CONSTRAINT pk_monitor_contacts PRIMARY KEY (monitor_id, contact_id),
  CONSTRAINT fk_monitor_contacts_contact_id FOREIGN KEY(contact_id) REFERENCES contacts (id) ON DELETE CASCADE,
  CONSTRAINT fk_monitor_contacts_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE INDEX ix_monitor_contacts_contact_id ON monitor_contacts (contact_id);
CREATE TABLE monitor_evidence (
  monitor_id INTEGER NOT NULL,
  last_good TEXT,
  failing TEXT,
  CONSTRAINT pk_monitor_evidence PRIMARY KEY (monitor_id),
  CONSTRAINT fk_monitor_evidence_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE TABLE monitor_states (
  monitor_id INTEGER NOT NULL,
  checked_at BIGINT,
  verdict VARCHAR(16),
  cause_code VARCHAR(32),
  cause TEXT,
  response_time INTEGER,
  status_since BIGINT,
  failing_since BIGINT,
  failures SMALLINT NOT NULL,
  recovering_since BIGINT,
  unconfirmed_at BIGINT,
  ssl_issued_at BIGINT,
  ssl_expires_at BIGINT,
  ssl_fingerprint VARCHAR(64),
  alerted_certificates TEXT,
  domain TEXT,
  alerted_domain_dates TEXT,
  rolled_until BIGINT,
  sums_version INTEGER DEFAULT '0' NOT NULL,
  paused_at BIGINT,
  resumed_at BIGINT,
  judged_since BIGINT,
  spec_since BIGINT,
  CONSTRAINT pk_monitor_states PRIMARY KEY (monitor_id),
  CONSTRAINT fk_monitor_states_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE
);
CREATE INDEX ix_monitor_states_domain ON monitor_states (domain);
CREATE INDEX ix_monitor_states_not_up ON monitor_states (monitor_id) WHERE verdict IS NULL OR verdict <> 'up';
CREATE TABLE passkey_challenges (
  digest VARCHAR(64) NOT NULL,
  person_id INTEGER NOT NULL,
  challenge TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_passkey_challenges PRIMARY KEY (digest),
  CONSTRAINT fk_passkey_challenges_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE
);
CREATE INDEX ix_passkey_challenges_person_id ON passkey_challenges (person_id);
CREATE TABLE passkeys (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  person_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  credential TEXT NOT NULL,
  public_key TEXT NOT NULL,
  sign_count BIGINT NOT NULL,
  verifies BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT,
  CONSTRAINT fk_passkeys_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_passkeys_credential UNIQUE (credential)
);
CREATE INDEX ix_passkeys_person_id ON passkeys (person_id);
CREATE TABLE recoveries (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  digest VARCHAR(64) NOT NULL,
  person_id INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT fk_recoveries_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_recoveries_digest UNIQUE (digest)
);
CREATE INDEX ix_recoveries_person_id ON recoveries (person_id);
CREATE TABLE recovery_codes (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  person_id INTEGER NOT NULL,
  digest VARCHAR(64) NOT NULL,
  CONSTRAINT fk_recovery_codes_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE
);
CREATE INDEX ix_recovery_codes_person_id ON recovery_codes (person_id);
CREATE TABLE report_mails (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  contact_id INTEGER NOT NULL,
  tag TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT fk_report_mails_contact_id_contacts FOREIGN KEY(contact_id) REFERENCES contacts (id) ON DELETE CASCADE
);
CREATE INDEX ix_report_mails_contact_id ON report_mails (contact_id);
CREATE TABLE sessions (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  digest VARCHAR(64) NOT NULL,
  person_id INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  password_at BIGINT,
  former_digest VARCHAR(64),
  address VARCHAR(64),
  browser VARCHAR(32),
  system VARCHAR(32),
  device_id INTEGER,
  CONSTRAINT fk_sessions_person_id FOREIGN KEY(person_id) REFERENCES people (id) ON DELETE CASCADE,
  CONSTRAINT uq_sessions_digest UNIQUE (digest)
);
CREATE INDEX ix_sessions_former_digest ON sessions (former_digest);
CREATE INDEX ix_sessions_person_id ON sessions (person_id);
CREATE TABLE shards (
  location_id INTEGER NOT NULL,
  number SMALLINT NOT NULL,
  owner VARCHAR(96),
  until BIGINT,
  token BIGINT NOT NULL,
  CONSTRAINT pk_shards PRIMARY KEY (location_id, number),
  CONSTRAINT fk_shards_location_id FOREIGN KEY(location_id) REFERENCES locations (id) ON DELETE CASCADE
);
CREATE TABLE status_page_groups (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  status_page_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  CONSTRAINT fk_status_page_groups_status_page_id FOREIGN KEY(status_page_id) REFERENCES status_pages (id) ON DELETE CASCADE
);
CREATE INDEX ix_status_page_groups_status_page_id ON status_page_groups (status_page_id);
CREATE TABLE status_page_monitors (
  status_page_id INTEGER NOT NULL,
  monitor_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  name TEXT,
  group_id INTEGER,
  group_position INTEGER,
  CONSTRAINT pk_status_page_monitors PRIMARY KEY (status_page_id, monitor_id),
  CONSTRAINT fk_status_page_monitors_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE,
  CONSTRAINT fk_status_page_monitors_status_page_id FOREIGN KEY(status_page_id) REFERENCES status_pages (id) ON DELETE CASCADE
);
CREATE INDEX ix_status_page_monitors_monitor_id ON status_page_monitors (monitor_id);
CREATE TABLE subscribers (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  status_page_id INTEGER NOT NULL,
  channel VARCHAR(16) NOT NULL,
  value TEXT NOT NULL,
  digest VARCHAR(64) NOT NULL,
  created_at BIGINT NOT NULL,
  confirmed_at BIGINT,
  CONSTRAINT fk_subscribers_status_page_id FOREIGN KEY(status_page_id) REFERENCES status_pages (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX uq_subscribers_page_digest ON subscribers (status_page_id, digest);
CREATE TABLE deliveries (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  message_id VARCHAR(40) NOT NULL,
  event VARCHAR(32) NOT NULL,
  monitor_id INTEGER,
  incident_id INTEGER,
  subscriber_id INTEGER,
  channel VARCHAR(16) NOT NULL,
  value TEXT NOT NULL,
  sources TEXT,
  lane VARCHAR(32) NOT NULL,
  facts TEXT NOT NULL,
  status VARCHAR(16) NOT NULL,
  reason TEXT,
  attempts JSON NOT NULL,
  covered_by INTEGER,
  lease_until BIGINT,
  lease_token VARCHAR(32),
  created_at BIGINT NOT NULL,
  next_attempt_at BIGINT,
  delivered_at BIGINT,
  CONSTRAINT fk_deliveries_incident_id FOREIGN KEY(incident_id) REFERENCES incidents (id) ON DELETE CASCADE,
  CONSTRAINT fk_deliveries_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE,
  CONSTRAINT uq_deliveries_message_id UNIQUE (message_id)
);
CREATE INDEX ix_deliveries_covered_by ON deliveries (covered_by);
CREATE INDEX ix_deliveries_created_at ON deliveries (created_at);
CREATE INDEX ix_deliveries_failed ON deliveries (lane, id) WHERE status = 'failed';
CREATE INDEX ix_deliveries_incident_id ON deliveries (incident_id);
CREATE INDEX ix_deliveries_lane ON deliveries (lane, status);
CREATE INDEX ix_deliveries_monitor_id ON deliveries (monitor_id);
CREATE INDEX ix_deliveries_pending ON deliveries (next_attempt_at) WHERE status = 'pending';
CREATE INDEX ix_deliveries_subscriber_id ON deliveries (subscriber_id);
CREATE INDEX ix_deliveries_waiting ON deliveries (monitor_id) WHERE status = 'held' AND next_attempt_at IS NOT NULL;
CREATE TABLE posts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  status_page_id INTEGER NOT NULL,
  title TEXT NOT NULL,
  state VARCHAR(16) NOT NULL,
  incident_id INTEGER,
  starts_at BIGINT,
  ends_at BIGINT,
  automatic BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  corrected_at BIGINT,
  CONSTRAINT fk_posts_incident_id FOREIGN KEY(incident_id) REFERENCES incidents (id) ON DELETE SET NULL,
  CONSTRAINT fk_posts_status_page_id FOREIGN KEY(status_page_id) REFERENCES status_pages (id) ON DELETE CASCADE
);
CREATE INDEX ix_posts_incident_id ON posts (incident_id);
CREATE INDEX ix_posts_page_created ON posts (status_page_id, created_at);
CREATE TABLE report_mails_sent (
  report_mail_id INTEGER NOT NULL,
  month VARCHAR(7) NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_report_mails_sent PRIMARY KEY (report_mail_id, month),
  CONSTRAINT fk_report_mails_sent_report_mail_id_report_mails FOREIGN KEY(report_mail_id) REFERENCES report_mails (id) ON DELETE CASCADE
);
CREATE TABLE post_monitors (
  post_id INTEGER NOT NULL,
  monitor_id INTEGER NOT NULL,
  CONSTRAINT pk_post_monitors PRIMARY KEY (post_id, monitor_id),
  CONSTRAINT fk_post_monitors_monitor_id FOREIGN KEY(monitor_id) REFERENCES monitors (id) ON DELETE CASCADE,
  CONSTRAINT fk_post_monitors_post_id FOREIGN KEY(post_id) REFERENCES posts (id) ON DELETE CASCADE
);
CREATE INDEX ix_post_monitors_monitor_id ON post_monitors (monitor_id);
CREATE TABLE post_updates (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  post_id INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  body TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  corrected_at BIGINT,
  announced_at BIGINT,
  announced_to INTEGER DEFAULT '0' NOT NULL,
  CONSTRAINT fk_post_updates_post_id FOREIGN KEY(post_id) REFERENCES posts (id) ON DELETE CASCADE
);
CREATE INDEX ix_post_updates_post_id ON post_updates (post_id);
CREATE INDEX ix_post_updates_unannounced ON post_updates (id) WHERE announced_at IS NULL;
