"""Status pages: what the public sees, without a key or a login."""
