"""Headless Chromium, driven by the DevTools protocol over a pipe.

Chromium reads commands from descriptor 3 and writes answers to descriptor 4, each a JSON text that ends with a zero
byte, so no package and no port is needed. A `Page` has what a person has: a mouse, a keyboard and eyes.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-extensions --disable-background-networking --hide-scrollbars --force-device-scale-factor=1"
).split()
KEYS = {
    "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Escape": 27, "Tab": 9, "Home": 36,
    "End": 35, "PageDown": 34, "PageUp": 33,
}


def find():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A running Chromium; use it with `with`."""

    def __init__(self, program, limit=60.0):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.limit = limit
        self.number = 0
        self.buffer = b""
        self.events = []
        commands, self.out = os.pipe()
        self.answers, answers = os.pipe()
        # The shell gives the two ends the numbers that Chromium expects.
        line = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        words = ["bash", "-c", line, program, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, pass_fds=(commands, answers), **quiet)
        os.close(commands)
        os.close(answers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.answers)
        self.folder.cleanup()

    def call(self, method, session=None, **params):
        """Sends a command and gives its result; what else is said meanwhile is kept in `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.limit
        while True:
            answer = self.read(end)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def read(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self.answers, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError(f"Chromium said nothing for {self.limit} s" if not ready else "Chromium ended")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1360, height=860, scheme="light"):
        """A page with a file, in a window of this size, for a person who prefers light or dark."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        page.call("Runtime.enable")
        page.call("Network.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.prefer(scheme)
        page.call("Page.enable")
        page.call("Page.navigate", url=path.resolve().as_uri())
        page.wait("document.readyState === 'complete' && document.querySelector('#main').childElementCount > 0")
        page.wait_until_idle()
        return page


class Page:
    """A page of the browser."""

    def __init__(self, browser, session, target):
        self.browser = browser
        self.session = session
        self.target = target

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def eval(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, condition, limit=20.0):
        end = time.monotonic() + limit
        while not self.eval(condition):
            if time.monotonic() > end:
                raise RuntimeError(f"this did not come true in {limit} s: {condition}")
            time.sleep(0.02)

    def wait_until_idle(self):
        """Waits until two frames were drawn."""
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def click(self, selector):
        """A click of the mouse on the middle of an element."""
        place = self.eval(
            "(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'nearest'});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
            % json.dumps(selector)
        )
        self.click_at(*place)

    def click_at(self, x, y, count=1):
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=number)
        self.wait_until_idle()

    def key(self, name, shift=False):
        """A key is pressed: one that writes, or one of `KEYS`."""
        text = {} if name in KEYS and name != "Enter" else {"text": "\r" if name == "Enter" else name}
        code = KEYS.get(name, ord(name.upper()) if len(name) == 1 else 0)
        modifiers = 8 if shift else 0
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.wait_until_idle()

    def write(self, text):
        for letter in text:
            self.key(letter)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def text(self, selector):
        return self.eval("document.querySelector(%s)?.textContent" % json.dumps(selector))

    def focused(self):
        return self.eval("document.activeElement.id || document.activeElement.tagName.toLowerCase()")

    def problems(self):
        """What scripts threw and what the page tried to load, since it was opened."""
        said = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                said.append(params["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                said.append(str(params["args"]))
            if event["method"] == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
                said.append(params["request"]["url"])
        return said
