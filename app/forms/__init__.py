"""The one schema, in WTForms: the browser and /api/v1 send their input to the same classes.

``binding`` is for the API, ``browser`` for the dashboard's views. Both use the same fields, and
answer the same mistake with the same sentence.
"""
