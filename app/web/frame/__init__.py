"""What surrounds every page: session, security headers, errors, links, assets, refreshed parts."""
