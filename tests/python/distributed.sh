#!/usr/bin/env bash
# Programs in Python as ranks of a run: one process, ranks that paddle launch starts over each transport, ranks that a
# program spawns, and ranks that fail.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
export PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1
launch() { timeout 120 "$PADDLE_BIN/paddle-launch" "$@"; }

launch -n 3 "$base_python" tests/python/distributed.py > "$folder/out" 2>&1 || fail "3 ranks: $(tail -20 "$folder/out")"
PADDLE_TRANSPORT=tcp launch -n 2 "$base_python" tests/python/distributed.py > "$folder/out" 2>&1 ||
  fail "2 ranks over TCP: $(tail -20 "$folder/out")"

cat > "$folder/one.py" <<'P'
import paddle_toolchain as paddle
import paddle_toolchain.distributed as dist

assert not dist.is_initialized() and (dist.get_rank(), dist.get_world_size()) == (0, 1)
try:
    dist.all_reduce(paddle.to_tensor(1.0))
    raise SystemExit("no error before init_parallel_env")
except paddle.UsageError as error:
    assert "init_parallel_env" in str(error), error
dist.init_parallel_env()
x, out = paddle.to_tensor([2.0]), []
dist.all_reduce(x)
dist.broadcast(x)
dist.all_gather(out, x)
dist.alltoall(out, [x])
dist.barrier()
assert [t.tolist() for t in [x, *out]] == [[2.0]] * 3
model = paddle.DataParallel(paddle.nn.Linear(1, 1))
model(paddle.ones([1, 1])).sum().backward()
assert set(model.state_dict()) == {"weight", "bias"}
dist.destroy_process_group()
assert not dist.is_initialized()
P
python "$folder/one.py" || fail "one process"

cat > "$folder/spawned.py" <<'P'
import sys
import paddle_toolchain as paddle
import paddle_toolchain.distributed as dist

def rank_of(path, fails):
    dist.init_parallel_env()
    if fails and dist.get_rank() == 1:
        sys.exit(3)
    x = paddle.to_tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x)
    with open(f"{path}/{dist.get_rank()}", "w") as file:
        file.write(str(x.item()))

if __name__ == "__main__":
    dist.spawn(rank_of, (sys.argv[1], sys.argv[2] == "fails"), nprocs=2)
P
mkdir "$folder/ranks"
timeout 60 "$base_python" "$folder/spawned.py" "$folder/ranks" works || fail "spawn"
[[ "$(cat "$folder/ranks/0" "$folder/ranks/1")" == 3.03.0 ]] || fail "spawn: other values"
if timeout 60 "$base_python" "$folder/spawned.py" "$folder/ranks" fails > "$folder/out" 2>&1; then fail "a failed rank is not noticed"; fi
grep -q "PeerError" "$folder/out" || fail "spawn: $(tail -3 "$folder/out")"

# Ranks whose programs differ end with an error instead of other numbers.
cat > "$folder/differ.py" <<'P'
import paddle_toolchain as paddle
import paddle_toolchain.distributed as dist

dist.init_parallel_env()
x = paddle.to_tensor([1.0, 2.0])
try:
    dist.all_reduce(x if dist.get_rank() else x[:1])
except paddle.Error as error:
    print(type(error).__name__, error)
    raise
P
if launch -n 2 "$base_python" "$folder/differ.py" > "$folder/out" 2>&1; then fail "ranks that differ are not noticed"; fi
grep -q "InternalError.*all_reduce" "$folder/out" || fail "ranks that differ: $(tail -5 "$folder/out")"
