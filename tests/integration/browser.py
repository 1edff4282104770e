"""Headless Chromium, driven by the DevTools protocol over a pipe: no port, no package beside the browser."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


def reason_to_skip():
    """Why no browser can be started here; None if one can."""
    if not PROGRAM:
        return "no Chromium on this host (Debian's package chromium)"
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, timeout=60, check=False)
    return None if done.returncode == 0 else f"{PROGRAM} does not start"  # Ubuntu's deb only points to a snap


class Browser:
    """One browser with one page; `events` keeps what the page did."""

    def __init__(self, timeout_s=120):
        self.timeout_s = timeout_s
        self.profile = tempfile.TemporaryDirectory()
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()

        def pipes():  # the protocol is on 3 and 4
            first, second = os.dup(read_there), os.dup(write_there)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
             f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=pipes, pass_fds=(3, 4))
        os.close(read_there)
        os.close(write_there)
        self.incoming, self.outgoing = read_here, write_here
        self.buffer, self.next_id, self.events = b"", 0, []
        self.session = None
        target = self._page()
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.incoming)
        os.close(self.outgoing)
        self._remove_profile()

    def _remove_profile(self):
        deadline = time.monotonic() + self.timeout_s
        # the browser's child processes outlive it by a moment, and still write into the folder
        while True:
            try:
                return self.profile.cleanup()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _page(self):
        deadline = time.monotonic() + self.timeout_s
        while time.monotonic() < deadline:
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise TimeoutError("the browser opened no page")

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.incoming], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.incoming, 1 << 20)
            if not part:
                raise ConnectionError("the browser has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        """Calls a method of the protocol and returns its result."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.outgoing, data):]
        deadline = time.monotonic() + self.timeout_s
        while True:
            answer = self._message(deadline)
            if answer.get("id") != self.next_id:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", "exception in the page"))
        return result["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + self.timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def look(self, width=1280, height=900, dark=False, density=1):
        """Size of the window, and colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=density, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        """Opens a file and waits until its page is drawn; `events` begins anew."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
        self.wait_for("document.documentElement.dataset.drawn === 'yes'")

    def draw_all(self):
        """Draws what waits until somebody looks at it."""
        self.evaluate("dispatchEvent(new Event('beforeprint'))")

    def problems(self):
        """Errors and warnings of console, log and scripts since open()."""
        self.evaluate("1")  # what is under way comes before the answer
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Addresses asked for since open(), without the page itself."""
        self.evaluate("1")
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent" and event["params"]["type"] != "Document"]

    def picture(self, path, whole=False):
        """Saves a screenshot as PNG."""
        result = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(result["data"]))
