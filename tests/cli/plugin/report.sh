#!/usr/bin/env bash
# The report of `paddle plugin check` against its schema, the page, levels; `list --probe` with
# plug-ins that crash, hang, are broken or missing.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include" PADDLE_PLUGIN_LIST="$folder/plugins.json"
unset PADDLE_PLUGINS
root="$PWD"
cd "$folder" || exit 1
says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }

cp "$root/plugins/gated_norm/gated_norm.plugin.yaml" .
ok "$plugin" check gated_norm.plugin.yaml --quick --report good --json
says "level: complete"
tail -n 1 out > line.json
cat > wrong.plugin.yaml << 'Y'
plugin: {name: wrong, version: 1.0.0, abi: 1}
operations:
  halved:
    signature: (x:T) -> out
    doc: x / 2 <&>.
    body: x * 0.5
    vjp: [g * 0.6]
    samples: ["x=f64[2,3]"]
Y
[[ "$(run_bounded "$plugin" check wrong.plugin.yaml --quick --seed 5 --report bad)" == 1 ]] || fail "a wrong gradient passes"
says "level: computes"
ok "$bin/paddle-schema" plugin-report
cp out schema.json
python3 - << 'P' || fail "the reports"
import html.parser, json, re

def check(value, schema, path):
    kind = schema.get("type")
    if "enum" in schema: assert value in schema["enum"], (path, value)
    if "anyOf" in schema: return
    if kind == "object":
        assert isinstance(value, dict), path
        for key in schema.get("required", []): assert key in value, (path, key)
        for key, each in value.items():
            assert key in schema["properties"], (path, key)
            check(each, schema["properties"][key], f"{path}.{key}")
    elif kind == "array":
        for i, each in enumerate(value): check(each, schema["items"], f"{path}.{i}")
    elif kind == "string": assert isinstance(value, str), path
    elif kind == "integer": assert isinstance(value, int), path
    elif kind == "number": assert isinstance(value, (int, float)), path
    elif kind == "boolean": assert isinstance(value, bool), path

schema = json.load(open("schema.json"))
for name in ("good", "bad"):
    report = json.load(open(f"{name}/report.json"))
    check(report, schema, name)
    page = open(f"{name}/report.html", encoding="utf-8").read()
    assert "http" not in page and "<script" not in page and "src=" not in page, name
    class Tags(html.parser.HTMLParser):
        open_tags = []
        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "br"): self.open_tags.append(tag)
        def handle_startendtag(self, tag, attributes): pass
        def handle_endtag(self, tag): assert self.open_tags.pop() == tag, tag
    tags = Tags()
    tags.feed(page)
    assert not tags.open_tags, tags.open_tags
    for case in report["cases"]: assert case["name"] in page and case["seconds"] >= 0, case
assert json.loads(open("line.json").read())["passed"] == json.load(open("good/report.json"))["passed"]
bad = json.load(open("bad/report.json"))
assert bad["seed"] == 5 and bad["quick"] and bad["level"] == "computes", bad
assert sum(case["seconds"] for case in bad["cases"]) > 0
failed = [case for case in bad["cases"] if case["status"] == "failed"]
assert [case["group"] for case in failed] == ["gradients", "training", "training"], failed
assert abs(float(failed[0]["actual"]) / float(failed[0]["expected"]) - 1.2) < 1e-3 and failed[0]["tolerance"] < 1e-5, failed
assert "--seed 5" in failed[0]["reproduce"]
P
# The command of the failure reproduces it, and a single group proves no level beyond loading.
[[ "$(run_bounded "$plugin" check wrong.plugin.yaml --quick --group gradients --only wrong.halved --seed 5)" == 1 ]] || fail "the command passes"
! grep -q "^level:" out || fail "a single group has a level"

# --- list --probe ---
cat > base.cc << 'C'
#include <paddle/plugin/plugin.hpp>
#include <cstdlib>
#include <unistd.h>
static void run(const paddle::plugin::Run& r) { r.out<float>(0)[0] = r.in<float>(0)[0]; }
PADDLE_PLUGIN(NAME, "1.2.0", plugin) {
#ifdef CRASHES
  std::abort();
#endif
#ifdef HANGS
  for (volatile int i = 0;; i = i + 1) {}
#endif
#ifdef EXITS
  _exit(0);
#endif
  plugin.operations("same: {signature: '(x:T) -> out', doc: x., body: x * 1}");
  plugin.kernel(TEXT ".same", "cpu", "float32", run);
}
C
for name in fine CRASHES HANGS EXITS; do
  lower="${name,,}"
  { [[ "$name" == fine ]] || echo "#define $name"; sed -e "s/NAME/$lower/" -e "s/TEXT/\"$lower\"/" base.cc; } > "$lower.cc"
  ok "$plugin" build "$lower.cc" -o "$lower.so"
done
ok "$plugin" add fine fine.so
head -c 1000 fine.so > cut.so
cat > config.yaml << 'Y'
plugins: [{path: wrong.plugin.yaml}, "fine >= 1.0", nowhere.so]
Y
PADDLE_PLUGINS="hangs.so:cut.so" ok "$plugin" list --probe --timeout 1 --plugin crashes.so --plugin exits.so --config config.yaml --json
python3 - << 'P' || { fail "the list"; cat out; }
import json, os
all = {os.path.basename(each["path"]): each for each in json.loads(open("out").read())}
assert set(all) == {"crashes.so", "exits.so", "hangs.so", "cut.so", "wrong.plugin.yaml", "fine.so", "nowhere.so"}, set(all)
assert [all[n]["loads"] for n in ("fine.so", "wrong.plugin.yaml")] == [True, True], all
assert all["fine.so"]["kernels"] == ["fine.same"] and all["fine.so"]["operations"] == ["fine.same"]
assert all["fine.so"]["version"] == "1.2.0" and all["fine.so"]["named_by"] == "config"
for name, why in {"crashes.so": "signal 6 inside plug-in crashes 1.2.0", "exits.so": "crashed", "hangs.so": "not done after 1 seconds",
                  "cut.so": "cut.so: ", "nowhere.so": "no such file"}.items():
    assert not all[name]["loads"] and why in all[name]["fault"], (name, all[name]["fault"])
P
ok "$plugin" list --probe
says "operations: fine.same"
expect 2 "--config has no effect without --probe" "$plugin" list --config config.yaml
expect 2 "no such plug-in file" "$plugin" list --plugin nowhere.so
expect 2 "missing.yaml: no such file" "$plugin" list --probe --config missing.yaml
PADDLE_PLUGIN_LIST="$folder/none.json" ok "$plugin" list --probe
says "no plug-ins"
finish
