"""Uses the page of paddle-serve in a browser: chat_page.py BROWSER PORT KEY

The browser is a Chromium, which the script drives over pipes with the Chrome DevTools Protocol.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

browser, port, key = sys.argv[1:]


class Page:
    """A tab of a headless browser."""

    def __init__(self, url, profile):
        commands, to_browser = os.pipe()
        from_browser, answers = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"]
        redirected = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        self.process = subprocess.Popen(["bash", "-c", redirected, browser, *options], pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.to_browser, self.from_browser = os.fdopen(to_browser, "wb", 0), os.fdopen(from_browser, "rb", 0)
        self.number, self.rest, self.session, self.errors = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        self.wait('document.readyState === "complete"')

    def message(self):
        while b"\0" not in self.rest:
            more = self.from_browser.read(1 << 16)
            if not more:
                raise RuntimeError("the browser ended")
            self.rest += more
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to_browser.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"])
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result)
        return result["result"].get("value")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.value(condition):
            assert time.monotonic() < end, f"{condition} does not become true: {self.texts()}"
            time.sleep(0.02)

    def texts(self):
        return self.value('[...document.querySelectorAll(".message")].map(e => [e.classList[1], e.textContent])')

    def type(self, text, enter=True):
        self.value('document.getElementById("text").focus()')
        self.call("Input.insertText", text=text)
        if enter:
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")

    def click(self, name):
        box = self.value(f'(r => [r.x + r.width / 2, r.y + r.height / 2])(document.getElementById("{name}").getBoundingClientRect())')
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def set(self, name, value):
        self.value(f'(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event("change")); }})(document.getElementById("{name}"))')

    def slow_down(self, bytes_a_second):
        self.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=bytes_a_second, uploadThroughput=-1)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(20)


def answer_to(messages):
    """The server's answer without the page."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    body = {"model": "llama", "messages": messages, "temperature": 0}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", "Authorization": "Bearer " + key})
    return json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]


IDLE = '!document.getElementById("send").disabled'


def use(page):
    # Without the key: an error, and nothing is kept of it.
    page.type("12")
    page.wait('document.querySelector(".error") !== null && ' + IDLE)
    assert page.value("messages.length") == 0 and "key" in page.texts()[-1][1], page.texts()
    page.click("clear")
    # With it: the list of models and two turns, by the key and by the button.
    page.set("key", key)
    page.wait('document.getElementById("model").value === "llama"')
    page.set("temperature", "0")
    page.type("123")
    page.wait("messages.length === 2 && " + IDLE)
    first = answer_to([{"role": "user", "content": "123"}])
    assert first and page.texts() == [["user", "123"], ["assistant", first]], (page.texts(), first)
    page.type("4", enter=False)
    page.click("send")
    page.wait("messages.length === 4 && " + IDLE)
    second = answer_to([{"role": "user", "content": "123"}, {"role": "assistant", "content": first}, {"role": "user", "content": "4"}])
    assert page.texts()[2:] == [["user", "4"], ["assistant", second]], (page.texts(), second)
    # Text is text: no markup of a message is interpreted.
    page.click("clear")
    page.wait("messages.length === 0")
    assert page.texts() == [], page.texts()
    page.value('show("user", "<img src=x onerror=alert(1)>")')
    assert page.value('document.querySelector("main img") === null')
    page.click("clear")
    # A slow answer is stopped, and what came of it stays; a new chat has nothing of it.
    page.slow_down(300)
    for button in ("stop", "clear"):
        page.type("123")
        page.wait('(document.querySelector(".assistant") ?? {}).textContent')
        assert not page.value(IDLE), "the answer was there at once"
        page.click(button)
        page.wait(IDLE)
        if button == "stop":
            part = page.texts()[1][1]
            assert first.startswith(part) and page.value("messages.length") == 2, (part, first)
        else:
            assert page.value("messages.length") == 0 and page.texts() == [], page.texts()
        page.click("clear")
    page.slow_down(-1)
    page.type("123")
    page.wait("messages.length === 2 && " + IDLE)
    assert page.texts()[1][1] == first, page.texts()
    assert not page.errors, page.errors


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    page = Page(f"http://127.0.0.1:{port}/", profile)
    try:
        use(page)
    finally:
        page.close()
print("ok")
