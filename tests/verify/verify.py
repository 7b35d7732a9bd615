"""Verifies deliveries with the example of docs/api.md, which uses the PyPI package standardwebhooks.

Reads a JSON array of { secret, headers, body } (the body in base64) and writes one of true and false; null for what
the package does not know, which is signatures made with a key pair.
"""

import base64
import json
import pathlib
import re
import sys

guide = (pathlib.Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
examples = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
names = {"remember": lambda event: None}
exec(next(code for code in examples if "def receive(" in code), names)


def verdict(delivery):
    if not delivery["secret"].startswith("whsec_"):
        return None
    return names["receive"](delivery["secret"], delivery["headers"], base64.b64decode(delivery["body"])) == 204


json.dump([verdict(delivery) for delivery in json.load(sys.stdin)], sys.stdout)
