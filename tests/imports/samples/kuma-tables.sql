-- Uptime Kuma 1.23
CREATE TABLE monitor (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(150), active BOOLEAN NOT
    NULL DEFAULT 1, user_id INTEGER, interval INTEGER NOT NULL DEFAULT 20, url TEXT, type
    VARCHAR(20), weight INTEGER DEFAULT 2000, hostname VARCHAR(255), port INTEGER, created_date
    DATETIME NOT NULL DEFAULT (DATETIME('now')), keyword VARCHAR(255), maxretries INTEGER NOT NULL
    DEFAULT 0, ignore_tls BOOLEAN NOT NULL DEFAULT 0, upside_down BOOLEAN NOT NULL DEFAULT 0,
    maxredirects INTEGER NOT NULL DEFAULT 10, accepted_statuscodes_json TEXT NOT NULL DEFAULT
    '["200-299"]', dns_resolve_type VARCHAR(5), dns_resolve_server VARCHAR(255), dns_last_result
    VARCHAR(255), retry_interval INTEGER NOT NULL DEFAULT 0, push_token VARCHAR(20) DEFAULT NULL,
    method TEXT NOT NULL DEFAULT 'GET', body TEXT DEFAULT null, headers TEXT DEFAULT null,
    basic_auth_user TEXT DEFAULT null, basic_auth_pass TEXT DEFAULT null, docker_host INTEGER,
    docker_container VARCHAR(255), proxy_id INTEGER, expiry_notification BOOLEAN DEFAULT 1,
    mqtt_topic TEXT, mqtt_success_message VARCHAR(255), mqtt_username VARCHAR(255), mqtt_password
    VARCHAR(255), database_connection_string VARCHAR(2000), database_query TEXT, auth_method
    VARCHAR(250), auth_domain TEXT, auth_workstation TEXT, grpc_url VARCHAR(255) DEFAULT null,
    grpc_protobuf TEXT DEFAULT null, grpc_body TEXT DEFAULT null, grpc_metadata TEXT DEFAULT null,
    grpc_method VARCHAR(255) DEFAULT null, grpc_service_name VARCHAR(255) DEFAULT null,
    grpc_enable_tls BOOLEAN NOT NULL DEFAULT 0, radius_username VARCHAR(255), radius_password
    VARCHAR(255), radius_calling_station_id VARCHAR(50), radius_called_station_id VARCHAR(50),
    radius_secret VARCHAR(255), resend_interval INTEGER NOT NULL DEFAULT 0, packet_size INTEGER NOT
    NULL DEFAULT 56, game VARCHAR(255), http_body_encoding VARCHAR(25), description TEXT DEFAULT
    null, tls_ca TEXT DEFAULT null, tls_cert TEXT DEFAULT null, tls_key TEXT DEFAULT null, parent
    INTEGER, invert_keyword BOOLEAN NOT NULL DEFAULT 0, json_path TEXT, expected_value VARCHAR(255),
    kafka_producer_topic VARCHAR(255), kafka_producer_brokers TEXT, kafka_producer_sasl_options
    TEXT, kafka_producer_message TEXT, oauth_client_id TEXT DEFAULT null, oauth_client_secret TEXT
    DEFAULT null, oauth_token_url TEXT DEFAULT null, oauth_scopes TEXT DEFAULT null,
    oauth_auth_method TEXT DEFAULT null, timeout DOUBLE NOT NULL DEFAULT 0, gamedig_given_port_only
    BOOLEAN NOT NULL DEFAULT 1, kafka_producer_ssl BOOLEAN NOT NULL DEFAULT 0,
    kafka_producer_allow_auto_topic_creation BOOLEAN NOT NULL DEFAULT 0);
CREATE TABLE heartbeat (id INTEGER PRIMARY KEY AUTOINCREMENT, important BOOLEAN NOT NULL DEFAULT 0,
    monitor_id INTEGER NOT NULL, status SMALLINT NOT NULL, msg TEXT, time DATETIME NOT NULL, ping
    INTEGER, duration INTEGER NOT NULL DEFAULT 0, down_count INTEGER NOT NULL DEFAULT 0);
CREATE TABLE notification (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(255), active BOOLEAN
    NOT NULL DEFAULT 1, user_id INTEGER NOT NULL, is_default BOOLEAN NOT NULL DEFAULT 0, config
    TEXT);
CREATE TABLE monitor_notification (id INTEGER PRIMARY KEY AUTOINCREMENT, monitor_id INTEGER NOT
    NULL, notification_id INTEGER NOT NULL);
CREATE TABLE tag (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(255) NOT NULL, color
    VARCHAR(255) NOT NULL, created_date DATETIME NOT NULL DEFAULT (DATETIME('now')));
CREATE TABLE monitor_tag (id INTEGER PRIMARY KEY AUTOINCREMENT, monitor_id INTEGER NOT NULL, tag_id
    INTEGER NOT NULL, value TEXT);
CREATE TABLE monitor_maintenance (id INTEGER PRIMARY KEY AUTOINCREMENT, monitor_id INTEGER NOT NULL,
    maintenance_id INTEGER NOT NULL);
