"""A Chromium without a window, driven over its debugging pipe: real clicks, keys and pictures."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import outcome
import trio
from attrs import define, field

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # root has no other way; what it opens is ours
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "about:blank",
)
_DUPLICATE: Final = (
    "import os, sys; [os.dup2(int(sys.argv[i]), i + 2) for i in (1, 2)]; os.execv(sys.argv[3], sys.argv[3:])"
)
"""Chromium reads from descriptor 3 and writes to 4."""
_WAIT: Final = """new Promise((resolve, reject) => {
  const end = performance.now() + %d;
  const look = () => {
    let value = null;
    try { value = (%s) } catch (error) { value = null }
    if (value) resolve(value);
    else if (performance.now() > end) reject(new Error("not within the time"));
    else setTimeout(look, 15);
  };
  look();
})"""


class PageError(AssertionError):
    """A script of the page, or of the test in it, failed."""


@define(eq=False)
class Page:
    """The one tab of the browser."""

    _to: trio.abc.SendStream
    session: str = ""
    problems: list[str] = field(factory=list)
    """Errors of scripts, of the console, of the policy and of requests."""
    _waiting: dict[int, Any] = field(factory=dict)
    _ids: Any = field(factory=lambda: count(1))

    async def call(self, method: str, **parameters: Any) -> Any:
        """What a command of the protocol answers."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        answered = self._waiting[number] = trio.Event()
        await self._to.send_all(json.dumps(message).encode() + b"\0")
        with trio.fail_after(30):
            await answered.wait()
        return self._waiting.pop(number).unwrap()

    async def evaluate(self, expression: str) -> Any:
        """The value of *expression* in the page, once it is there if it is a promise."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 20.0) -> Any:
        """Wait until *expression* holds, and return its value."""
        return await self.evaluate(_WAIT % (1000 * seconds, expression))

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def prefer(self, **features: str) -> None:
        """Set preferences of the reader, ``color_scheme="dark"`` for instance."""
        listed = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        await self.call("Emulation.setEmulatedMedia", features=listed)

    async def move(self, x: float, y: float) -> None:
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def click_at(self, x: float, y: float) -> None:
        await self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def pinch(self, x: float, y: float, before: float, after: float) -> None:
        """Move two fingers around a point from *before* to *after* pixels from it."""
        for kind, distance in (("touchStart", before), ("touchMove", (before + after) / 2), ("touchMove", after)):
            points = [{"x": x - distance, "y": y, "id": 0}, {"x": x + distance, "y": y, "id": 1}]
            await self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        await self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    async def click(self, element: str) -> None:
        """Click the middle of what the expression *element* is, once it is there."""
        x, y = await self.until(
            f"((e) => e && (e.scrollIntoView({{block: 'nearest'}}), e.getBoundingClientRect().width)"
            f" && ((r) => [r.x + r.width / 2, r.y + r.height / 2])(e.getBoundingClientRect()))({element})"
        )
        await self.click_at(x, y)

    async def press(self, key: str) -> None:
        """Press a key: a character, or ``Enter``, ``Escape``, ``ArrowDown`` and the like."""
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        parameters = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), **text}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def screenshot(self, path: Path) -> None:
        """Write what is seen as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        await trio.Path(path).write_bytes(base64.b64decode(answer["data"]))

    async def read(self, stream: trio.abc.ReceiveStream) -> None:
        """Hand answers to who waits for them, and keep what went wrong; until the browser has ended."""
        buffer = bytearray()
        async for part in stream:
            buffer += part
            *messages, buffer = buffer.split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            answered = self._waiting[message["id"]]
            error = message.get("error")
            result = outcome.Error(PageError(str(error))) if error else outcome.Value(message["result"])
            self._waiting[message["id"]] = result
            answered.set()
            return
        method, parameters = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.problems.append(str(parameters["args"]))


@asynccontextmanager
async def chromium(profile: Path) -> AsyncGenerator[Page]:
    """A page of a new browser, whose files are in the folder *profile*; it has ended afterwards."""
    assert CHROMIUM
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    arguments = [CHROMIUM, f"--user-data-dir={profile}", *_FLAGS]
    command = [sys.executable, "-c", _DUPLICATE, str(read_commands), str(write_answers), *arguments]
    start = partial(trio.run_process, pass_fds=(read_commands, write_answers), stderr=subprocess.DEVNULL, check=False)
    async with trio.open_nursery() as nursery:
        process = await nursery.start(partial(start, command, start_new_session=True, deliver_cancel=_kill))
        os.close(read_commands)
        os.close(write_answers)
        page = Page(trio.lowlevel.FdStream(write_commands))
        nursery.start_soon(page.read, trio.lowlevel.FdStream(read_answers))
        try:
            targets = await page.call("Target.getTargets")
            target = next(one["targetId"] for one in targets["targetInfos"] if one["type"] == "page")
            page.session = (await page.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Performance"):
                await page.call(f"{domain}.enable")
            yield page
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            nursery.cancel_scope.cancel()


async def _kill(process: trio.Process) -> None:
    os.killpg(process.pid, signal.SIGKILL)
