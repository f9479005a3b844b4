# Comparisons of runs with their replays, and runs whose processes are killed: for tests of tables.

same() {  # RUN, REPLAY: all checkpoints that the replay has, and the last one of the run
  local path step file
  for path in "$2"/checkpoints/[0-9]*; do
    [[ -d "$path" ]] || continue
    step="$(basename "$path")"
    for file in model.safetensors optimizer.safetensors; do
      cmp -s "$1/checkpoints/$step/$file" "$path/$file" || fail "$1 and $2 differ in $file of step $step"
    done
  done
  [[ -e "$2/checkpoints/${3:-$(readlink "$1/checkpoints/latest")}" ]] || fail "$2 ends before ${3:-the run}"
}
metrics() {  # RUN, REPLAY
  python3 - "$1" "$2" <<'P' || fail "$1 and $2 have other metrics"
import json, sys
def lines(run):
    timed = {"seconds", "samples_per_second", "data_wait"}
    return [{k: v for k, v in json.loads(l).items() if k not in timed} for l in open(f"{run}/metrics.jsonl")]
assert lines(sys.argv[1]) == lines(sys.argv[2])
P
}
kill_some() {  # SEED COMMAND...: ends workers and servers of a launcher at random
  python3 - "$@" <<'P'
import os, random, signal, subprocess, sys, time
random.seed(int(sys.argv[1]))
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
def children(variable):
    out = []
    for pid in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split():
        try:
            if variable in open(f"/proc/{pid}/environ", "rb").read(): out.append(int(pid))
        except OSError:
            pass
    return out
killed = 0
while process.poll() is None:
    time.sleep(random.uniform(0.02, 0.3))
    if killed == 5: break
    targets = children(b"PADDLE_RANK=" if killed == 3 else b"PADDLE_SERVER=")
    if not targets: continue
    try:
        os.kill(random.choice(targets), signal.SIGKILL)
        killed += 1
    except ProcessLookupError:
        pass
print(f"killed {killed} processes")
sys.exit(process.wait(timeout=300))
P
}
