import hashlib
import hmac
import json
import os
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

SECRET = b"whsec_test_1"


class Shop(BaseHTTPRequestHandler):
    shipped = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        timestamp = self.headers["X-Gateway-Timestamp"]
        mac = hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        signed = hmac.compare_digest("sha256=" + mac, self.headers["X-Gateway-Signature"])
        if signed and abs(time.time() - int(timestamp)) <= 300:
            event = json.loads(body)
            if event["data"]["event_type"] == "transaction.paid":
                self.shipped.append(event["data"]["correlation_id"])
            self.send_response(200)
        else:
            self.send_response(401)
        self.end_headers()

    def log_message(self, *args):
        pass


class PaymentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        file = Path(folder.name, "addr")
        binary = os.environ.get("MOCKGATEWAY", "mockgateway")
        gateway = subprocess.Popen([binary, "-addr", "127.0.0.1:0", "-port-file", file, "-clock", "manual", "-log", "off"],
                                   stdout=subprocess.DEVNULL)
        cls.addClassCleanup(gateway.wait)
        cls.addClassCleanup(gateway.terminate)
        while not file.exists() or not file.read_text():
            if gateway.poll() is not None:
                raise RuntimeError("mockgateway has exited")
            time.sleep(0.02)
        cls.url = "http://" + file.read_text().strip()

        shop = HTTPServer(("127.0.0.1", 0), Shop)
        cls.addClassCleanup(shop.server_close)
        cls.addClassCleanup(shop.shutdown)
        threading.Thread(target=shop.serve_forever).start()
        cls.shop = f"http://127.0.0.1:{shop.server_port}/"

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body or {}).encode(), headers={
            "Authorization": "Bearer sk_test_python", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)["data"]

    def test_a_paid_order_is_shipped(self):
        self.call("POST", "/__mock/endpoints", {"url": self.shop, "secret": SECRET.decode()})
        transaction = self.call("POST", "/v2/transactions", {
            "external_ref": "order-1001",
            "amount": 4990,
            "method": "pix",
            "buyer": {"name": "Ana", "email": "ana@example.com", "document": {"type": "CPF", "number": "52998224725"}},
            "products": [{"name": "T-shirt", "price": 4990}],
        })
        self.assertEqual(transaction["status"], "pending")
        self.call("POST", f"/__mock/transactions/{transaction['id']}/pay")  # what the buyer's bank does
        self.call("POST", "/__mock/deliveries/wait")  # until the webhooks are delivered
        self.assertEqual(Shop.shipped, ["order-1001"])


if __name__ == "__main__":
    unittest.main()
