"""A headless Chromium for tests, spoken to over its debugging pipe: no port, no driver.

`Browser.page` opens a file; a `Page` evaluates expressions, presses keys, and knows what it asked for.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from attrs import define, field

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_S: Final = 60.0
# The browser wants its commands on descriptor 3 and answers on 4.
_LAUNCH: Final = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_OPTIONS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_KEYS: Final = {"Enter": ("\r", 13), "Escape": ("", 27)}


def find_browser() -> str | None:
    """Return the path of a Chromium, or none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@define(eq=False)
class Browser:
    """A running browser."""

    write: int
    read: int
    _numbers: Iterator[int] = field(factory=lambda: count(1))
    _buffer: bytes = b""
    events: list[dict[str, Any]] = field(factory=list)

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; what happens meanwhile is kept in `events`."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self.write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                answer: dict[str, Any] = message["result"]
                return answer
            self.events.append(message)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self.read], [], [], TIMEOUT_S)
            assert ready, "the browser does not answer"
            data = os.read(self.read, 1 << 16)
            assert data, "the browser ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def page(self, path: Path, *, width: int = 1600, height: int = 900) -> Page:
        """Open a file and wait until it is drawn."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        page.ask("Page.navigate", url=path.as_uri())
        while page.run("document.readyState !== 'complete'"):
            pass
        return page


@define(eq=False)
class Page:
    """One open page."""

    browser: Browser
    session: str

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **parameters)

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text of the first element that matches."""
        found = self.run(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent")
        assert isinstance(found, str), f"there is no {selector}"
        return found

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that match."""
        found: list[str] = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")
        return found

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, *keys: str) -> None:
        """Press and release keys."""
        for key in keys:
            text, code = _KEYS.get(key, (key, 0))
            down = {"key": key, "windowsVirtualKeyCode": code} | ({"text": text} if text else {})
            self.ask("Input.dispatchKeyEvent", type="keyDown", **down)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true, looking with every frame that is drawn."""
        self.run(
            f"new Promise((done) => {{ const look = () => ({expression}) ? done() : setTimeout(look, 10); look(); }})"
        )

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def requests(self) -> list[str]:
        """Return the addresses of everything the page asked for, itself included."""
        return [event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Return errors of scripts, and what the policy forbade."""
        logged = [event["params"]["entry"]["text"] for event in self._events("Log.entryAdded")]
        thrown = [json.dumps(event["params"]) for event in self._events("Runtime.exceptionThrown")]
        return logged + thrown

    def _events(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self.browser.events if event.get("method") == method]


@contextmanager
def browsing(executable: str, folder: Path) -> Iterator[Browser]:
    """Run a browser with its profile in `folder`."""
    (command_read, command_write), (answer_read, answer_write) = _high_pipe(), _high_pipe()
    arguments = [*_OPTIONS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH, str(command_read), str(answer_write), executable, *arguments],
        pass_fds=(command_read, answer_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        browser = Browser(command_write, answer_read)
        yield browser
        browser.ask("Browser.close")
    finally:
        process.kill()
        process.wait()
        os.close(command_write)
        os.close(answer_read)


def _high_pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors are not among those that the launch overwrites."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
