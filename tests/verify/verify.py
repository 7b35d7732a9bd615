"""Verifies deliveries with the PyPI package standardwebhooks.

Reads a JSON array of { secret, headers, body } (the body in base64) and writes one of true and false; null for what
the package does not know, which is signatures made with a key pair.
"""

import base64
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError


def verdict(delivery):
    if not delivery["secret"].startswith("whsec_"):
        return None
    try:
        Webhook(delivery["secret"]).verify(base64.b64decode(delivery["body"]), delivery["headers"])
    except WebhookVerificationError:
        return False
    return True


json.dump([verdict(delivery) for delivery in json.load(sys.stdin)], sys.stdout)
