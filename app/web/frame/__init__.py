"""Code for every page: session, security headers, errors, links, assets, fragments."""
