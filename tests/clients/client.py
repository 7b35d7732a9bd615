"""Walks one invoice through the service with a client that openapi-python-client generated from /openapi.json.

    python client.py URL INTEGRATOR_KEY DEMO_KEY openapi.json

The new integrator onboards a taxpayer. The invoices are those of the demo account, for which the examples are made.

Each answer is read by the generated model of its status and written again. What is written must be what was answered:
then the model has read all of it. The bodies are the examples of the document, read by the generated models as well.
"""

import copy
import importlib
import json
import sys
import typing

from einvoice_client.client import AuthenticatedClient

URL, INTEGRATOR, DEMO, DOCUMENT = sys.argv[1:5]
IRN = "INV0001-94CD90AA-20260115"
METHODS = ("get", "put", "post", "patch")


def operations():
    """Returns the group and the example of each operation, by its id."""
    with open(DOCUMENT, encoding="utf-8") as file:
        document = json.load(file)
    found = {}
    for item in document["paths"].values():
        for method, operation in item.items():
            if method in METHODS:
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                found[operation["operationId"]] = (operation["tags"][0].replace("-", "_"), content.get("example"))
    return found


OPERATIONS = operations()
read = 0


def body_model(module):
    hint = typing.get_type_hints(module.sync_detailed).get("body")
    models = typing.get_args(hint) or (hint,)
    return next((model for model in models if hasattr(model, "from_dict")), None)


def call(name, status, key, change=None, **parameters):
    """Calls an operation with its example, changed where `change` says so. Returns the answer's body."""
    global read
    group, example = OPERATIONS[name]
    module = importlib.import_module(f"einvoice_client.api.{group}.{name}")
    if example is not None:
        example = copy.deepcopy(example) | (change or {})
        parameters["body"] = body_model(module).from_dict(copy.deepcopy(example))
        sent = parameters["body"].to_dict()
        assert sent == example, f"{name} would send {sent} for {example}"
    client = AuthenticatedClient(
        base_url=URL, token=key, prefix="", auth_header_name="x-api-key", raise_on_unexpected_status=True, timeout=60
    )
    answer = module.sync_detailed(client=client, **parameters)
    raw = json.loads(answer.content)
    assert answer.status_code == status, f"{name} answers {int(answer.status_code)}: {raw}"
    assert answer.parsed is not None, f"{name}: the client does not read {raw}"
    assert answer.parsed.to_dict() == raw, f"{name} reads {answer.parsed.to_dict()} from {raw}"
    read += 1
    return raw


def onboard():
    call("invoice_categories", 200, "none")
    taxpayer = call("create_taxpayer", 201, INTEGRATOR)["data"]["id"]
    call("create_taxpayer", 422, INTEGRATOR)
    call("list_taxpayers", 200, INTEGRATOR)
    call("get_taxpayer", 200, INTEGRATOR, id=taxpayer)
    call("get_taxpayer", 404, INTEGRATOR, id=taxpayer + 1_000_000)
    call("get_integration_setup", 200, INTEGRATOR, id=taxpayer)
    call("update_profile", 200, INTEGRATOR, id=taxpayer)
    call("rotate_api_key", 200, INTEGRATOR, id=taxpayer)
    return taxpayer


def webhook(taxpayer):
    call("get_webhook", 422, INTEGRATOR, id=taxpayer)
    for name in ("update_webhook", "update_webhook_by_patch", "update_webhook_by_post"):
        call(name, 200, INTEGRATOR, id=taxpayer)
    state = call("get_webhook", 200, INTEGRATOR, id=taxpayer)["data"]["health"]["state"]
    assert state == "working", state
    call("rotate_webhook_secret", 200, INTEGRATOR, id=taxpayer)
    call("enable_webhook", 200, INTEGRATOR, id=taxpayer)
    call("list_deliveries", 200, INTEGRATOR, id=taxpayer)


def invoices(key):
    call("enums", 200, key)
    call("list_invoices", 401, "tpk_unknown")
    invoice = call("create_invoice", 201, key)["data"]["id"]
    call("create_invoice", 200, key)
    call("create_invoice", 422, key, {"invoice_no": "INV0099", "currency": "ngn"})
    call("create_full_invoice", 201, key)
    batch = call("create_batch", 201, key)["data"]["batch_no"]
    call("get_batch", 200, key, batch_no=batch)
    call("list_invoices", 200, key)
    call("get_invoice", 200, key, id=invoice)
    call("get_invoice", 404, key, id=invoice + 1_000_000)
    call("get_by_unique_no", 200, key)
    call("update_invoice", 200, key)
    call("update_status", 200, key)


def payments(key):
    for word in ("partial", "PARTIAL"):
        call("update_payment_status", 200, key, {"status": word, "amount": 10.5})
    call("update_payment_status", 422, key, {"amount": 1_000_000})
    call("update_payment_status", 200, key, {"status": "rejected"})


def pipeline(key):
    call("validate", 200, key)
    call("validate", 400, key, {"invoice_type_code": "999"})
    call("submit", 200, key)
    call("transmit", 200, key)
    call("confirm_receipt", 200, key, irn=IRN)
    call("report", 200, key)
    call("relay_payment_status", 200, key, irn=IRN)
    for name in ("confirm", "download", "get_run"):
        call(name, 200, key, irn=IRN)
    call("get_run", 404, key, irn="INV7777-94CD90AA-20260115")
    call("update_status", 409, key)
    call("list_events", 200, key)
    call("list_supplier_invoices", 200, key)


webhook(onboard())
invoices(DEMO)
payments(DEMO)
pipeline(DEMO)
print(f"Python: {read} answers of {len(OPERATIONS)} operations' client read without an error")
