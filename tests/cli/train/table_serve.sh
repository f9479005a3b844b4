#!/usr/bin/env bash
# Servers of tables that other launchers start: `paddle-ps serve` with a list of addresses, and
# PaddlePaddle's variables. A server listens on loopback only, admits no client without the token, and
# damaged frames, idle connections and random bytes do not disturb a run. A server that has lost its
# rows ends the run with a reason; a restart of the run continues from its checkpoint.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
ps="$bin/paddle-ps"
cd "$folder" || exit 1
python3 -c '
import random
random.seed(2)
with open("rows.csv", "w") as f:
    f.write("user,label\n")
    for i in range(6400): f.write(f"{random.randrange(900)},{random.randrange(2)}\n")'
cat > c.yaml <<'Y'
model:
  name: clicks
  inputs: {user: "int64[batch]"}
  model: |
    u = sparse_embedding(user, 4, name="user", weight_init=normal(0, 0.1))
    logit = sum(linear(u, 1), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 32
  train: {kind: csv, path: rows.csv, fields: [{name: user, scalar: true, dtype: int64}, {name: label, scalar: true, dtype: float32}]}
train: {epochs: 1, checkpoint_every: 100}
parameter_server: {placement: servers, servers: 2}
Y
ok "$train" c.yaml parallel.data=2 --simulate 2 --output wanted
same() {
  cmp -s "$1/checkpoints/200/model.safetensors" wanted/checkpoints/200/model.safetensors || fail "$1 differs"
}
mapfile -t ports < <(python3 -c '
import socket
all = [socket.socket() for _ in range(3)]
for s in all: s.bind(("127.0.0.1", 0))
for s in all: print(s.getsockname()[1])')
addresses="127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}"
# By addresses.
export PADDLE_RENDEZVOUS_TOKEN=a-secret
servers=()
for i in 0 1; do
  "$ps" serve c.yaml --index $i --of 2 --listen "127.0.0.1:${ports[i]}" -o served > server$i.out 2>&1 &
  servers+=($!)
done
cat > hostile.py <<'P'
import os, random, socket, struct, sys, time
random.seed(1)
port, folder = int(sys.argv[1]), sys.argv[2]
def connect():
    while True:
        try: return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError: time.sleep(0.05)
idle = [connect() for _ in range(200)]
for i in range(60):
    s = connect()
    s.settimeout(10)
    try:
        first = s.recv(100)
        if i % 3 == 0: s.sendall(random.randbytes(2000))
        elif i % 3 == 1: s.sendall(b"0" * 32 + b" " + b"0" * 64 + b" tables 0 2 1 2 8\n")
        else: s.sendall(struct.pack("<4sHHIIIQII", b"PPS1", 3, 0, 0, 0, 0, 1, 0, 0x7fffffff) + b"\n")
        # The server closes the connection, and says nothing.
        assert s.recv(100) == b"", "it answers a client without the token"
    except ConnectionResetError: pass
    s.close()
open(f"{folder}/hostile-done", "w")
time.sleep(1)
P
python3 hostile.py "${ports[0]}" "$folder" 2> hostile.err &
hostile=$!
ok env PADDLE_SERVER_ADDRESSES="$addresses" "$launch" -n 2 paddle-train c.yaml parallel.data=2 --output served
same served
wait "$hostile" || fail "hostile clients: $(cat hostile.err)"
for pid in "${servers[@]}"; do wait "$pid" || fail "a server ended with $?: $(cat server*.out)"; done
[[ ! -e served/servers ]] || fail "logs are left"
# A wrong token.
"$ps" serve c.yaml --index 0 --of 1 --listen "127.0.0.1:${ports[0]}" -o wrong > server.out 2>&1 &
server=$!
expect 7 "has a different token" env PADDLE_SERVER_ADDRESSES="127.0.0.1:${ports[0]}" PADDLE_RENDEZVOUS_TOKEN=another PADDLE_JOIN_TIMEOUT=1 \
  "$train" c.yaml --output wrong
# A config that trains otherwise.
expect 3 "states another 'optimizer'" env PADDLE_SERVER_ADDRESSES="127.0.0.1:${ports[0]}" "$train" c.yaml optimizer.lr=0.2 --output wrong
kill "$server" 2> /dev/null
wait "$server" 2> /dev/null
# PaddlePaddle's variables.
servers=()
for i in 0 1; do
  TRAINING_ROLE=PSERVER PADDLE_PSERVERS_IP_PORT_LIST="$addresses" POD_IP=127.0.0.1 PADDLE_PORT="${ports[i]}" \
    "$train" c.yaml parallel.data=2 --output paddle > server$i.out 2>&1 &
  servers+=($!)
done
for i in 0 1; do
  TRAINING_ROLE=TRAINER PADDLE_PSERVERS_IP_PORT_LIST="$addresses" PADDLE_TRAINER_ID=$i PADDLE_TRAINERS_NUM=2 \
    PADDLE_TRAINER_ENDPOINTS="127.0.0.1:${ports[2]},127.0.0.1:1" "$train" c.yaml parallel.data=2 --output paddle > worker$i.out 2>&1 &
  servers+=($!)
done
for pid in "${servers[@]}"; do wait "$pid" || fail "with PaddlePaddle's variables: $(tail -n 3 worker*.out server*.out)"; done
same paddle
expect 2 "is not in PADDLE_PSERVERS_IP_PORT_LIST" env TRAINING_ROLE=PSERVER PADDLE_PSERVERS_IP_PORT_LIST="$addresses" POD_IP=127.0.0.1 PADDLE_PORT=1 "$train" c.yaml
expect 2 "expected TRAINER or PSERVER" env TRAINING_ROLE=HETER PADDLE_PSERVERS_IP_PORT_LIST="$addresses" "$train" c.yaml
unset PADDLE_RENDEZVOUS_TOKEN
# Beyond this machine it takes a secret, and the word that nothing is encrypted.
expect 2 "without encryption" "$ps" serve c.yaml --listen 0.0.0.0:0
expect 2 "need PADDLE_RENDEZVOUS_TOKEN" "$ps" serve c.yaml --listen 0.0.0.0:0 --insecure-network
# Without a log a server that was killed has lost its rows: the run says so, or continues from its
# checkpoint.
kill_server() {  # RUN: after the first checkpoint
  until [[ -e "$1/checkpoints/100" ]]; do sleep 0.02; done
  local server
  for server in $(pgrep -f "paddle-train c.yaml.*--output $1\$"); do
    tr '\0' '\n' < "/proc/$server/environ" | grep -q '^PADDLE_SERVER=1' && kill -9 "$server" && return
  done
}
for restarts in 0 3; do
  kill_server "lost$restarts" &
  run=("$launch" --servers 2 -n 2 --restarts $restarts paddle-train c.yaml parallel.data=2 train.epochs=12 parameter_server.durability=none --output "lost$restarts")
  if ((restarts == 0)); then expect 7 "has lost the rows of its tables" "${run[@]}"; else ok "${run[@]}"; fi
  wait $!
done
# A server that is stopped is named, and the run ends in time.
(
  until [[ -e stopped/checkpoints/100 ]]; do sleep 0.02; done
  for server in $(pgrep -f "paddle-train c.yaml.*--output stopped\$"); do
    tr '\0' '\n' < "/proc/$server/environ" | grep -q '^PADDLE_SERVER=0' && kill -STOP "$server" && break
  done
) &
most_lines=20 expect 7 "has not answered worker" "$launch" --servers 2 -n 2 --dead-after 1 --timeout 4 paddle-train c.yaml parallel.data=2 train.epochs=12 --output stopped
grep -q "note: server 0 has been stopped for 1 seconds; the ranks wait for it" "$folder/error" || fail "a stopped server is not named"
wait $!
ok "$train" c.yaml parallel.data=2 --simulate 2 train.epochs=12 --output long
cmp -s lost3/checkpoints/2400/model.safetensors long/checkpoints/2400/model.safetensors || fail "a run that went back to its checkpoint differs"
finish
