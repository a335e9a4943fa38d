"""What the Python clients of `make clients` share: where the server is, and that it is idle again after a client has left."""

import json
import os
import time
import urllib.request

URL = os.environ["POND_URL"]
MODEL = os.environ["POND_MODEL"]
QUESTION = "What is the weather in Oslo?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "degrees": {"type": "integer", "minimum": -60, "maximum": 60}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def idle():
    """Waits until nothing is in flight; a client that left must not hold the device."""
    for _ in range(300):
        with urllib.request.urlopen(URL + "/health") as answer:
            if json.load(answer)["in_flight"] == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server is still busy 30 seconds after the client left")


def ok(what):
    print("ok", what, flush=True)
