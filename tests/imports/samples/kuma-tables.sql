CREATE TABLE monitor (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(150), active BOOLEAN DEFAULT 1,
    user_id INTEGER, interval INTEGER DEFAULT 20, url TEXT, type VARCHAR(20), weight INTEGER,
    hostname VARCHAR(255), port INTEGER, created_date DATETIME, keyword VARCHAR(255),
    maxretries INTEGER DEFAULT 0, ignore_tls BOOLEAN DEFAULT 0, upside_down BOOLEAN DEFAULT 0,
    maxredirects INTEGER DEFAULT 10, accepted_statuscodes_json TEXT DEFAULT '["200-299"]',
    retry_interval INTEGER, method TEXT DEFAULT 'GET', body TEXT, headers TEXT, basic_auth_user TEXT,
    basic_auth_pass TEXT, expiry_notification BOOLEAN DEFAULT 1, auth_method VARCHAR(250),
    resend_interval INTEGER DEFAULT 0, http_body_encoding VARCHAR(25), invert_keyword BOOLEAN,
    parent INTEGER, timeout DOUBLE DEFAULT 0, proxy_id INTEGER);
CREATE TABLE heartbeat (id INTEGER PRIMARY KEY, monitor_id INTEGER, msg TEXT);
CREATE TABLE notification (id INTEGER PRIMARY KEY, name VARCHAR(255), config TEXT,
    active BOOLEAN, user_id INTEGER, is_default BOOLEAN);
CREATE TABLE monitor_notification (id INTEGER PRIMARY KEY, monitor_id INTEGER, notification_id INTEGER);
CREATE TABLE tag (id INTEGER PRIMARY KEY, name VARCHAR(255), color VARCHAR(255));
CREATE TABLE monitor_tag (id INTEGER PRIMARY KEY, monitor_id INTEGER, tag_id INTEGER, value TEXT);
