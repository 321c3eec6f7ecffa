INSERT INTO monitor (id, name, type, interval, url, accepted_statuscodes_json, maxretries, basic_auth_user,
    basic_auth_pass, auth_method, headers, timeout)
  VALUES (1, 'Shop', 'http', 60, 'https://shop.example.com', '["200-299","418"]', 2, 'ada', 'dbpassword', 'basic',
    '{"X-Key": "dbheadersecret"}', 48.0);
INSERT INTO monitor (id, name, type, interval, hostname, port, active) VALUES (2, 'Database', 'port', 120, '2001:db8::5', 5432, 0);
INSERT INTO monitor (id, name, type, interval, hostname) VALUES (3, 'Router', 'ping', 60, '192.0.2.1');
INSERT INTO notification VALUES (1, 'Chat', 1, 1, 0, '{"type":"discord","discordWebhookUrl":"https://discord.com/api/webhooks/1/dbhook"}');
INSERT INTO monitor_notification VALUES (1, 1, 1);
INSERT INTO tag (id, name, color) VALUES (1, 'prod', 'red');
INSERT INTO monitor_tag VALUES (1, 1, 1, '');
