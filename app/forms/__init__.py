"""The one schema, in WTForms: what the browser posts and what /api/v1 accepts are the same classes.

``binding`` is what the API calls, ``browser`` what the dashboard's views call; both end in the same
fields and in the same sentences for the same mistakes.
"""
