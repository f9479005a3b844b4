#!/usr/bin/env bash
# paddle.Trainer is the job of paddle-train: the same model files and log, bit for bit.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
changes=(data.train.range='[0, 1280]' data.valid.range='[20000, 20400]' train.epochs=2 train.log_every=5)
"$PADDLE_BIN/paddle-train" configs/quickstart/digits.yaml "${changes[@]}" --output "$folder/tool" > "$folder/tool.out"
python - "$folder" "${changes[@]}" <<'P'
import os
import sys
import paddle_toolchain as paddle

folder, changes = sys.argv[1], sys.argv[2:]


class Seen:
    def __init__(self):
        self.events = []

    def on_start(self, trainer):
        self.events.append("start")

    def on_log(self, line):
        self.events.append(("log", line["step"]))

    def on_evaluate(self, line):
        self.events.append(("evaluate", line["step"]))

    def on_step(self, step, logs):
        self.events.append(("step", step, logs["loss"]))

    def on_checkpoint(self, folder):
        assert os.path.exists(f"{folder}/model.safetensors"), folder
        self.events.append(("checkpoint", os.path.basename(folder)))

    def on_end(self, run):
        self.events.append("end")


seen = Seen()
config = "configs/quickstart/digits.yaml"
run = paddle.Trainer(config, overrides=changes, output=f"{folder}/python", callbacks=[seen]).fit()
assert run.steps == 40, run.steps
assert seen.events[0] == "start" and seen.events[-1] == "end", seen.events
assert ("log", 5) in seen.events and ("evaluate", 40) in seen.events, seen.events
assert run.valid["metrics"]["accuracy"] > 0.2, run.valid
assert [event[1] for event in seen.events if event[0] == "step"] == list(range(1, 41)), seen.events
assert ("checkpoint", "40") in seen.events, seen.events
assert [line["step"] for line in run.log if line["kind"] == "train"] == list(range(5, 41, 5)), run.log


model = paddle.Model(run.model_folder)
assert model.inputs == {"image": "float32[batch, 1, 28, 28]"}, model.inputs
batch = next(iter(paddle.io.open(config, "valid")))
scores = model.predict(image=batch["image"])["logits"]
again = model.clone().predict(batch["image"])["logits"]
assert scores.shape == [200, 10] and scores.tolist() == again.tolist(), scores.shape
try:
    model.predict(picture=batch["image"])
    raise SystemExit("an unknown input was accepted")
except paddle.DataError:
    pass

trainer = paddle.Trainer(config, overrides=changes, output=f"{folder}/python")
found, outputs = trainer.evaluate(), trainer.predict("valid")
assert found["samples"] == 400 and found["accuracy"] == run.valid["metrics"]["accuracy"], (found, run.valid)
assert outputs["logits"].shape == [400, 10] and outputs["logits"][:200].tolist() == scores.tolist()
net = paddle.lang("models/digits_cnn.yaml").eval()
net.set_state_dict(paddle.load(f"{run.model_folder}/model.safetensors"))
assert abs(net(batch["image"]) - scores).max().item() < 1e-4
for call in (lambda: trainer.evaluate("none"), lambda: trainer.predict("test"),
             lambda: paddle.Trainer(config, output=f"{folder}/empty").evaluate()):
    try:
        call()
        raise SystemExit("data or a run that is not there was accepted")
    except paddle.Error:
        pass


class Stops:
    def on_log(self, line):
        return "stop" if line["step"] >= 10 else None


run = paddle.Trainer(config, overrides=changes, output=f"{folder}/stopped", callbacks=[Stops()]).fit()
assert 10 <= run.steps < 20, run.steps


class Fails:
    def on_log(self, line):
        raise KeyError(line["step"])


try:
    paddle.Trainer(config, overrides=changes, output=f"{folder}/failed", callbacks=[Fails()]).fit()
    raise SystemExit("the exception of the callback is lost")
except KeyError as error:
    assert error.args == (5,), error.args

for bad, kind in [(["train.epocs=1"], paddle.ConfigError), (["optimizer.lr=-1"], paddle.ConfigError)]:
    try:
        paddle.Trainer(config, overrides=bad)
        raise SystemExit(f"{bad} was accepted")
    except kind as error:
        assert error.code == 3 and bad[0].split("=")[0].split(".")[1] in str(error), str(error)
with open(f"{folder}/wrong.yaml", "w") as file:
    file.write(f"extends: {os.path.abspath(config)}\ntrain:\n  epocs: 1\n")
try:
    paddle.config.load(f"{folder}/wrong.yaml")
    raise SystemExit("a wrong config was accepted")
except paddle.ConfigError as error:
    assert (error.file.endswith("wrong.yaml"), error.line) == (True, 3), (error.file, error.line)
try:
    paddle.Trainer("no-such.yaml")
    raise SystemExit("a config that is not there was accepted")
except paddle.Error:
    pass
P
cmp "$folder/tool/model/model.safetensors" "$folder/python/model/model.safetensors" || fail "the weights differ"
diff -r "$folder/tool/model" "$folder/python/model" > /dev/null || fail "the model folders differ"
without_times() { sed -E 's/"(samples_per_second|seconds|data_wait)":[^,}]*//g' "$1"; }
diff <(without_times "$folder/tool/metrics.jsonl") <(without_times "$folder/python/metrics.jsonl") ||
  fail "the logs differ"
