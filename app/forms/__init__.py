"""The one schema, in WTForms: the browser and /api/v1 send their input to the same classes.

``schema`` binds what the API gets, ``browser`` what the dashboard's views get. Both use the same
fields, and answer the same mistake with the same sentence.
"""
