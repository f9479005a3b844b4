#!/usr/bin/env bash
# paddle get: names, URLs and repositories from a local server; interrupted downloads continue; wrong
# content, missing files and dead servers are errors of one line.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
get="$bin/paddle-get"
[[ -e "$bin/../lib/libpaddle_http.so" ]] || { echo "built without libcurl"; exit 77; }
cd "$folder" || exit 1
export HOME="$folder/home" no_proxy=127.0.0.1
unset PADDLE_DATA PADDLE_HUB PADDLE_TEST_DATA XDG_CACHE_HOME HF_TOKEN

cat > server.py <<'P'
import hashlib, http.server, json, re, threading

BIG = bytes(range(256)) * 4000
FILES = {"/big.bin": BIG, "/small.txt": b"hello\n", "/org/tiny/resolve/main/config.json": b'{"a": 1}',
         "/org/tiny/resolve/main/model.safetensors": BIG, "/org/tiny/resolve/main/README.md": b"no",
         "/org/quants/resolve/main/m-Q4.gguf": b"GGUF4", "/org/quants/resolve/main/m-Q8.gguf": b"GGUF8",
         "/files/words.txt": b"one two three\n"}
breaks = {"/breaks.bin": 2}
log = open("log.txt", "a", buffering=1)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, body, headers={}):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        path = self.path.split("?")[0]
        print(self.path, self.headers.get("Range", "-"), self.headers.get("Authorization", "-"), file=log)
        if path.startswith("/api/models/"):
            name = path.split("/")[3] + "/" + path.split("/")[4]
            prefix = f"/{name}/resolve/main/"
            files = [{"rfilename": p[len(prefix):], "size": len(b), "lfs": {"sha256": hashlib.sha256(b).hexdigest(), "size": len(b)}}
                     for p, b in FILES.items() if p.startswith(prefix)]
            if name == "org/evil": files = [{"rfilename": "../../outside.txt", "size": 3}]
            if name == "org/junk": return self.answer(200, b"<html>")
            return self.answer(200, json.dumps({"siblings": files}).encode()) if files else self.answer(404, b"{}")
        if path == "/moved.txt": return self.answer(302, b"", {"Location": "/small.txt"})
        if path == "/loop.txt": return self.answer(302, b"", {"Location": "/loop.txt"})
        if path == "/busy.txt": return self.answer(503, b"later")
        body = BIG if path in ("/breaks.bin", "/whole.bin") else FILES.get(path)
        if body is None: return self.answer(404, b"nothing")
        start = 0
        wanted = re.match(r"bytes=(\d+)-$", self.headers.get("Range", ""))
        if wanted and path != "/whole.bin": start = int(wanted.group(1))
        if start > len(body): return self.answer(416, b"")
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if start: self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        if breaks.get(path, 0) > 0:
            breaks[path] -= 1
            self.wfile.write(body[start:start + 300000])
            self.close_connection = True
            return
        self.wfile.write(body[start:])

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open("port.txt", "w").write(str(server.server_port))
server.serve_forever()
P
python3 server.py 2> /dev/null & server=$!
trap 'kill $server 2> /dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 100); do [[ -s port.txt ]] && break; sleep 0.05; done
base="http://127.0.0.1:$(cat port.txt)"
big_hash="$(python3 -c 'import hashlib; print(hashlib.sha256(bytes(range(256)) * 4000).hexdigest())')"
same() { python3 -c 'import sys; sys.exit(open(sys.argv[1], "rb").read() != bytes(range(256)) * 4000)' "$1" || fail "$1 differs"; }

# URLs
ok "$get" "$base/big.bin" -o down
same down/big.bin
ok "$get" "$base/small.txt?x=1"
[[ "$(cat small.txt)" == hello ]] || fail "small.txt"
expect 2 "small.txt: already exists" "$get" "$base/small.txt"
ok "$get" "$base/small.txt" --overwrite
ok "$get" "$base/moved.txt"
[[ "$(cat moved.txt)" == hello ]] || fail "moved.txt"
ok "$get" "$base/big.bin" -o checked --sha256 "$big_hash"
ok "$get" "$base/big.bin" -o checked --sha256 "${big_hash:0:10}"
grep -q "was there already" out || fail "a file that is right is kept"
expect 4 "expected 0123456789" "$get" "$base/big.bin" -o wrong --sha256 0123456789
[[ -z "$(ls wrong)" ]] || fail "a file with a wrong hash stayed"
expect 4 "no such file" "$get" "$base/nothing.bin"
expect 6 "redirect" "$get" "$base/loop.txt"
expect 2 "does not end in a file name" "$get" "$base"
expect 2 "8 to 64 hexadecimal digits" "$get" "$base/big.bin" --sha256 xyz
expect 6 "cannot be reached" "$get" "http://127.0.0.1:9/x.bin"
expect 2 "--only is for repositories" "$get" "$base/big.bin" --only '*'

# interrupted: the connection ends early twice, each time at another place
ok "$get" "$base/breaks.bin" -o broken --sha256 "$big_hash"
same broken/breaks.bin
grep -q "breaks.bin bytes=300000-" log.txt || fail "the download did not continue where it was"
mkdir -p resumed
python3 -c 'open("resumed/big.bin.part", "wb").write((bytes(range(256)) * 4000)[:500000])'
ok "$get" "$base/big.bin" -o resumed --sha256 "$big_hash"
same resumed/big.bin
grep -q "big.bin bytes=500000-" log.txt || fail "the part file was not used"
python3 -c 'open("resumed/whole.bin.part", "wb").write((bytes(range(256)) * 4000)[:500000])'
ok "$get" "$base/whole.bin" -o resumed --sha256 "$big_hash"
same resumed/whole.bin
[[ ! -e resumed/whole.bin.part ]] || fail "a part file stayed"

# names
ok "$get" --list
grep -q '^resnet50 ' out || fail "resnet50 is not listed"
grep -q '^mnist ' out || fail "mnist is not listed"
ok "$get" resnet50 --dry-run
grep -q 'https://download.pytorch.org/models/resnet50-0676ba61.pth → ./resnet50-0676ba61.pth\|→ resnet50-0676ba61.pth' out || fail "the plan of resnet50"
expect 2 "did you mean 'resnet50'" "$get" resnet5O
expect 2 "python3-sklearn (debian)" "$get" iris
mkdir datasets
cat > datasets/words.yaml <<Y
description: three words
license: CC0
files:
  - {path: words.txt, url: "$base/files/words.txt", size: 14}
parts:
  train: {kind: text, path: "data://words.txt", context: 4}
Y
expect 4 "\`paddle get words\` downloads it" "$bin/paddle-data" words
ok "$get" words
[[ "$(cat home/.cache/paddle/data/words.txt)" == "one two three" ]] || fail "words.txt is not in the data folder"
ok "$bin/paddle-data" words
ok env PADDLE_HUB="$base" "$get" words -o mirror
[[ "$(cat mirror/words.txt)" == "one two three" ]] || fail "words.txt of the mirror"
sed -i 's/size: 14/size: 15/' datasets/words.yaml
expect 4 "has 14 bytes, expected 15" "$get" words -o short
sed -i 's/size: 14/size: 13/; s/size: 15/size: 13/' datasets/words.yaml
expect 4 "has 14 bytes, expected 13" "$get" words -o long
sed -i 's|path: words.txt|path: ../words.txt|' datasets/words.yaml
expect 3 "datasets/words.yaml:4" "$get" words

# repositories
export PADDLE_HUB="$base"
ok "$get" hf:org/tiny
same tiny/model.safetensors
[[ "$(cat tiny/config.json)" == '{"a": 1}' && ! -e tiny/README.md ]] || fail "the files of org/tiny"
ok env HF_TOKEN=secret "$get" hf:org/tiny@main --only '*.json' -o other --json
python3 -c 'import json
o = json.loads(open("out").read().strip().split("\n")[-1])
assert [f["file"] for f in o["files"]] == ["other/config.json"] and o["files"][0]["verified"], o' || fail "--json"
grep -q "config.json - Bearer secret" log.txt || fail "the token was not sent"
expect 2 "has 2 GGUF files; choose with --only" "$get" hf:org/quants
ok "$get" hf:org/quants --only '*Q8*'
[[ "$(cat quants/m-Q8.gguf)" == GGUF8 && ! -e quants/m-Q4.gguf ]] || fail "the files of org/quants"
expect 2 "matches no file" "$get" hf:org/tiny --only '*.nothing'
expect 4 "outside of the repository" "$get" hf:org/evil
expect 4 "not a list of files" "$get" hf:org/junk
expect 4 "status 404" "$get" hf:org/missing
expect 2 "expected hf:OWNER/NAME" "$get" hf:org
PADDLE_HUB=ftp://x expect 2 "PADDLE_HUB is 'ftp://x'" "$get" hf:org/tiny
finish
