#!/usr/bin/env python3
"""Validates a JSON document against a JSON Schema: check_schema.py SCHEMA DOCUMENT. Exit 0 valid, 1 not, 77 without jsonschema."""
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def refuse(constant):
    raise ValueError(f"{constant} in JSON")


schema = json.load(open(sys.argv[1]))
document = json.load(open(sys.argv[2]), parse_constant=refuse)
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
errors = sorted(validator(schema).iter_errors(document), key=lambda e: list(e.path))
for error in errors[:10]:
    print("/" + "/".join(map(str, error.path)) + ": " + error.message[:300])
sys.exit(1 if errors else 0)
