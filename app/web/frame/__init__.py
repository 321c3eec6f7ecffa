"""What every page has around it: session, security headers, errors, links, assets, fragments."""
