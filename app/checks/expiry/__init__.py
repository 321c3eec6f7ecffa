"""When a domain name expires: RDAP first, then WHOIS, then "unknown"."""
