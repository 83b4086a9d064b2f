"""A headless Chromium, controlled by its DevTools protocol over a pipe: JSON messages, each ended by a zero byte."""

import base64
import json
import os
import shutil
import subprocess
import time


def usable():
    """The path of Chromium if it is installed and starts, else None."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        subprocess.run([program or "chromium", "--version"], capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return program


PROGRAM = usable()
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # not available to root in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Chromium:
    """One page at a time. Its errors, warnings and network requests are collected in `problems`."""

    def __init__(self, profile):
        ours_out, theirs_in, theirs_out, ours_in = *reversed(os.pipe()), *reversed(os.pipe())
        self._read, self._write = ours_in, ours_out
        # The protocol uses file descriptors 3 and 4, which a shell can redirect.
        redirect = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        command = ["bash", "-c", redirect, PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._count, self._session, self.problems = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._count:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("chromium has ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        what, said = event.get("method"), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.problems.append(said["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif what == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.problems.append(str([value.get("value") for value in said["args"]]))
        elif what == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.problems.append(said["entry"]["text"])
        elif what == "Network.requestWillBeSent" and not said["request"]["url"].startswith("file:"):
            self.problems.append(f"asked for {said['request']['url'][:80]}")

    def open(self, path, width=1280, height=900, scheme="light"):
        self.problems.clear()
        self.resize(width, height, scheme)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState === 'complete'")
        # Resize observers draw after a frame.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width, height=900, scheme="light"):
        mobile = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", expression))
        return found["result"].get("value")

    def until(self, expression, seconds=10.0):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"not true after {seconds} s: {expression}"
            time.sleep(0.02)

    def press(self, key, code=None, text=None):
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **extra)

    def screenshot(self, path, whole=False):
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait(10)
        os.close(self._read)
        os.close(self._write)
