#!/usr/bin/env bash
# `paddle schema`: valid JSON with types, bounds, defaults and doc lines of the keys; and the pages of
# docs/reference, which are made of it, are up to date.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
"$bin/paddle" schema train > "$folder/train.json" || fail "paddle schema train"
python3 - "$folder/train.json" <<'P' || fail "the schema of training configs"
import json, sys
schema = json.load(open(sys.argv[1]))
def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")
keys = schema["properties"]
check("draft", schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
check("required", set(schema["required"]), {"data"})
check("alternatives", [[form["required"] for form in each["oneOf"]] for each in schema["allOf"]],
      [[["model"], ["models"]], [["loss"], ["step"]], [["optimizer"], ["optimizers"]]])
check("other keys", schema["additionalProperties"], False)
check("default of seed", keys["seed"]["default"], 0)
batch = keys["data"]["properties"]["batch_size"]
check("batch_size", [f for f in batch["anyOf"] if f.get("type") == "integer"], [{"type": "integer", "minimum": 1, "maximum": 1 << 24}])
adamw = [f for f in keys["optimizer"]["anyOf"] if f.get("properties", {}).get("name") == {"const": "adamw"}]
check("forms of adamw", len(adamw), 1)
check("its beta1", adamw[0]["properties"]["beta1"]["default"], 0.9)
check("bounds of beta1", adamw[0]["properties"]["beta1"]["anyOf"][0],
      {"type": "number", "minimum": 0.0, "exclusiveMaximum": 1.0})
resize = keys["data"]["properties"]["transforms"]["items"]["properties"]["resize"]
check("keys of resize", sorted(resize["properties"]), ["fields", "height", "mode", "width"])
check("keys that it needs", resize["required"], ["fields", "height", "width"])
mixing = keys["data"]["properties"]["batch_augment"]["items"]
check("other transforms of batches", (sorted(mixing["properties"]), mixing["additionalProperties"], mixing["maxProperties"]),
      (["cutmix", "mixup", "mosaic"], False, 1))
check("the old name of lr", adamw[0]["properties"]["learning_rate"]["deprecated"], True)
def undocumented(schema, path):
    for key, value in schema.get("properties", {}).items():
        if isinstance(value, dict) and "const" not in value:
            if "description" not in value:
                yield f"{path}.{key}"
            for form in value.get("anyOf", [value]):
                yield from undocumented(form, f"{path}.{key}")
                yield from undocumented(form.get("items", {}), f"{path}.{key}")
check("keys without a doc line", list(undocumented(schema, "")), [])
P
expect 2 "did you mean 'train'?" "$bin/paddle" schema trian
scripts/make-reference --check "$bin" || fail "docs/reference"
finish
