"""The one schema, in WTForms: the browser and /api/v1 send their input to the same classes.

``schema`` binds the input of the API, ``browser`` the input of the dashboard. Both use the same
fields, and answer the same mistake with the same sentence.
"""
