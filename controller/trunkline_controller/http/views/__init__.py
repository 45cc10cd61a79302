"""What the REST interface answers with: JSON forms of the controller's values, described for OpenAPI.

Units stand in the names: `_bit_s` is bits a second, `_s` seconds; times `at_s` are Unix time.
"""
