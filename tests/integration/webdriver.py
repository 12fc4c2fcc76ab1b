# SPDX-License-Identifier: Apache-2.0
"""A browser by WebDriver, with nothing but the standard library."""

import base64
import json
import os
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"tab": "\ue004", "enter": "\ue007", "left": "\ue012", "up": "\ue013",
        "right": "\ue014", "down": "\ue015", "home": "\ue011", "end": "\ue010",
        "shift": "\ue008", "space": " ", "escape": "\ue00c"}


class Missing(Exception):
    """The browser cannot be started here."""


class Browser:
    def __init__(self, folder, width=1280, height=900, logs=("browser",)):
        self.session = None
        try:
            self.driver = subprocess.Popen(
                ["chromedriver", "--port=0", "--log-path=" + folder + "/driver.log"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except FileNotFoundError as e:
            raise Missing("chromedriver is not installed") from e
        self.base = "http://127.0.0.1:%d" % self._port()
        args = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                "--disable-background-networking", "--disable-component-update",
                "--no-first-run", "--lang=en", "--user-data-dir=" + folder + "/profile",
                "--window-size=%d,%d" % (width, height)]
        if os.geteuid() == 0:
            args.append("--no-sandbox")
        wanted = {"browserName": "chrome", "acceptInsecureCerts": False,
                  "goog:chromeOptions": {"args": args},
                  "goog:loggingPrefs": {name: "ALL" for name in logs}}
        try:
            answer = self._call("POST", "/session",
                                {"capabilities": {"alwaysMatch": wanted}})
        except RuntimeError as e:
            self.close()
            raise Missing(str(e)) from e
        self.session = "/session/" + answer["sessionId"]

    def _port(self):
        for line in self.driver.stdout:
            if "successfully on port" in line:
                return int(line.rstrip().rstrip(".").rsplit(" ", 1)[1])
        self.driver.wait(timeout=20)
        raise Missing("chromedriver does not start")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            value = json.load(e)["value"]
            raise RuntimeError("%s: %s" % (value["error"], value["message"])) from e

    def _do(self, method, path, body=None):
        return self._call(method, self.session + path, body)

    def go(self, url):
        self._do("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self._do("POST", "/execute/sync", {"script": script, "args": list(args)})

    def cdp(self, command, **params):
        return self._do("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def log(self, kind):
        return self._do("POST", "/se/log", {"type": kind})

    def press(self, *names):
        """Keys, one after the other; "shift+tab" holds one."""
        actions = []
        for name in names:
            parts = [KEYS.get(p, p) for p in name.split("+")]
            actions += [{"type": "keyDown", "value": p} for p in parts]
            actions += [{"type": "keyUp", "value": p} for p in reversed(parts)]
        self._do("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def wait(self, script, *args, seconds=20):
        """Until the script answers something true; answers that."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *args)
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def size(self, width, height, **more):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=more.get("scale", 1), mobile=more.get("mobile", False))

    def media(self, **features):
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def picture(self, path, whole=True):
        data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                        **({"clip": dict(self.run("""
                            const e = document.documentElement;
                            return { x: 0, y: 0, width: e.clientWidth, height: e.scrollHeight };
                        """), scale=1)} if whole else {}))["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        if self.session:
            try:
                self._do("DELETE", "")
            except (RuntimeError, OSError):
                pass
        self.driver.terminate()
        self.driver.wait(timeout=20)
