"""Checks whom a server without keys on a loopback address answers, and HTTP itself: serve_origins.py PORT"""

import http.client
import json
import socket
import sys

port = int(sys.argv[1])


def call(method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    return response, response.read()


def raw(request):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split(b" ")[1])


def expect(condition, what):
    if not condition:
        sys.exit("FAIL: %s" % (what,))


for host in ("127.0.0.1", "localhost", "LocalHost:%d" % port, "[::1]:9000", "localhost.", "127.0.0.1:80"):
    expect(call("GET", "/health", Host=host)[0].status == 200, host)
for host in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example", "10.0.0.1", ""):
    for path in ("/", "/health", "/metrics", "/v1/models", "/none"):
        response, text = call("GET", path, Host=host)
        expect(response.status == 403 and b"the Host is" in text, (host, path, response.status))
ask = json.dumps({"prompt": "1", "max_tokens": 1})
for origin in ("http://127.0.0.1:%d" % port, "http://localhost:3000", "http://[::1]"):
    expect(call("POST", "/v1/completions", ask, Origin=origin)[0].status == 200, origin)
for origin in ("http://evil.example", "https://evil.example:%d" % port, "null", "", "file://", "http://localhost.evil.example"):
    response, text = call("POST", "/v1/completions", ask, Origin=origin, **{"Content-Type": "text/plain"})
    expect(response.status == 403 and b"a page of" in text, (origin, response.status))

response, text = call("HEAD", "/health")
expect(response.status == 200 and text == b"" and response.getheader("Content-Length") == "15", "HEAD")
response, _ = call("HEAD", "/v1/completions")
expect(response.status == 405 and response.getheader("Allow") == "POST", "HEAD of POST")
response, _ = call("POST", "/health", "{}")
expect(response.status == 405 and response.getheader("Allow") == "GET, HEAD", "POST of GET")
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
connection.request("POST", "/v1/completions", iter([ask[:5].encode(), ask[5:].encode()]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
expect(connection.getresponse().status == 200, "a body in chunks")
line = b"GET /health HTTP/1.1\r\n"
expect(raw(line + b"Host: localhost\r\n\r\n") == 200, "one host")
for headers in (b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host: localhost\r\nX: a\0b\r\n", b"Host: localhost\r\nX: a\rb\r\n", b"Host: a b\r\n"):
    expect(raw(line + headers + b"\r\n") == 400, headers)

# Metrics of a model whose name has a quote.
_, text = call("GET", "/metrics")
expect(b'model="a\\"b<i>"' in text and b'"a"b' not in text, text)
print("ok")
