#!/usr/bin/env bash
# Servers of tables over gRPC: the bits of sockets, with certificates of the launcher and of files.
# Other certificates end a worker with status 7 and not the server. Network namespaces are the two
# machines of a run by paddle-launch --nodes, where nothing starts without TLS.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
for program in python3 openssl; do command -v $program > /dev/null || { echo "$program is missing"; exit 77; }; done
launch="$bin/paddle-launch"
ps="$bin/paddle-ps"
[[ -e "$bin/../lib/libpaddle_grpc.so" ]] || { echo "built without gRPC"; exit 77; }
cd "$folder" || exit 1
python3 -c '
with open("rows.csv", "w") as f:
    f.write("user,label\n")
    for i in range(1280): f.write(f"{i * i % 97},{i % 3 % 2}\n")'
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
train: {epochs: 1}
parameter_server: {placement: servers, servers: 2}
Y
ok "$launch" --servers 2 -n 2 paddle-train c.yaml parallel.data=2 --output wanted
same() {
  cmp -s "$1/checkpoints/40/model.safetensors" wanted/checkpoints/40/model.safetensors || fail "$1 differs"
}
grpc=(parallel.data=2 parameter_server.channel=grpc)
# Certificates of the launcher.
ok "$launch" --servers 2 -n 2 --logs logs paddle-train c.yaml "${grpc[@]}" --output launched
same launched
grep -q "; gRPC with TLS" logs/server-0.log || fail "the server does not say that rows are encrypted: $(cat logs/server-0.log)"
# A server that is killed comes back at another port, and the workers send again what was not answered.
long=(train.epochs=15 train.checkpoint_every=100)
ok "$train" c.yaml parallel.data=2 "${long[@]}" --simulate 2 --output long
(
  until [[ -e killed/checkpoints/100 ]]; do sleep 0.02; done
  for server in $(pgrep -f "paddle-train c.yaml.*--output killed\$"); do
    tr '\0' '\n' < "/proc/$server/environ" | grep -q '^PADDLE_SERVER=1' && kill -9 "$server" && break
  done
) &
ok "$launch" --servers 2 -n 2 paddle-train c.yaml "${grpc[@]}" "${long[@]}" --output killed
wait $!
grep -q "note: server 1 was killed by signal 9 (Killed); it starts again" "$folder/error" || fail "no server was killed"
cmp -s killed/checkpoints/600/model.safetensors long/checkpoints/600/model.safetensors || fail "a run whose server was killed differs"
most_lines=10 expect 6 "this installation has no gRPC (Debian: libgrpc++1.51, and libgrpc++-dev to build with it)" \
  env PADDLE_GRPC_MODULE=/nosuch "$launch" --servers 1 -n 1 paddle-train c.yaml parameter_server.channel=grpc --output no-module
# Certificates of files.
make() {  # NAME PURPOSE CA DAYS
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> /dev/null
  openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days "$4" -out "$1.pem" \
    -extfile <(printf 'extendedKeyUsage=%s\nsubjectAltName=IP:127.0.0.1,DNS:localhost' "$2") 2> /dev/null || fail "openssl"
}
for ca in ca other; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $ca.key -out $ca.pem -days 2 -subj "/CN=$ca" 2> /dev/null
done
make server serverAuth ca 2
make worker clientAuth ca 2
make unknown clientAuth other 2
make expired clientAuth ca -1
tls() { echo "parameter_server.tls={ca: $1.pem, certificate: $2.pem, key: $2.key}"; }
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
export PADDLE_RENDEZVOUS_TOKEN=a-secret PADDLE_SERVER_ADDRESSES="127.0.0.1:$port"
grpc+=(parameter_server.servers=1)
: > server.out
"$ps" serve c.yaml "${grpc[@]}" "$(tls ca server)" --index 0 --of 1 --listen "127.0.0.1:$port" -o served > server.out 2>&1 &
server=$!
until grep -q "gRPC with TLS" server.out; do kill -0 $server || { fail "no server: $(cat server.out)"; break; }; sleep 0.05; done
export PADDLE_JOIN_TIMEOUT=1
rejected() {  # TEXT ARGUMENTS…
  local text="$1"
  shift
  expect 7 "$text" "$train" c.yaml parameter_server.servers=1 "$@" --output wrong --overwrite
}
rejected "certificate verify failed" parameter_server.channel=grpc "$(tls other worker)"
rejected "has waited 1 seconds for server 0" parameter_server.channel=grpc "$(tls ca unknown)"
rejected "has waited 1 seconds for server 0" parameter_server.channel=grpc "$(tls ca expired)"
rejected "has waited 1 seconds for server 0" parameter_server.channel=grpc "$(tls ca server)"
rejected "has waited 1 seconds for server 0" parameter_server.channel=grpc
rejected "has waited 1 seconds for server 0" parameter_server.channel=sockets
PADDLE_RENDEZVOUS_TOKEN=another rejected "has a different token" parameter_server.channel=grpc "$(tls ca worker)"
# TLS 1.2, random bytes and silence.
if echo | timeout 10 openssl s_client -connect "127.0.0.1:$port" -tls1_2 -cert worker.pem -key worker.key > tls12.out 2>&1; then fail "TLS 1.2 is taken"; fi
python3 - "$port" <<'P'
import random, socket, sys
random.seed(1)
idle = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(100)]
for i in range(50):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try: s.sendall(random.randbytes(5000)); s.settimeout(10); s.recv(100)
    except OSError: pass
    s.close()
P
export PADDLE_JOIN_TIMEOUT=60
ok "$launch" -n 2 paddle-train c.yaml "${grpc[@]}" "$(tls ca worker)" --output served
same served
wait $server || fail "the server ended with $?: $(cat server.out)"
unset PADDLE_SERVER_ADDRESSES
expect 3 "'rows.csv' is not a PEM file" "$ps" serve c.yaml "parameter_server.tls={ca: rows.csv, certificate: worker.pem, key: worker.key}" parameter_server.channel=grpc
# Between machines nothing starts without TLS.
expect 2 "--insecure-network" "$ps" serve c.yaml --listen 0.0.0.0:0
expect 2 "parameter_server.channel: grpc" "$ps" serve c.yaml --listen 0.0.0.0:0 parameter_server.channel=sockets
# Two machines.
spaces=(paddle-a-$$ paddle-b-$$)
trap 'for space in "${spaces[@]}"; do ip netns del "$space" 2> /dev/null; done; rm -rf "$folder"' EXIT
connected() {
  [[ $EUID == 0 ]] && ip netns add "${spaces[0]}" && ip netns add "${spaces[1]}" &&
    ip link add pa$$ netns "${spaces[0]}" type veth peer name pb$$ netns "${spaces[1]}"
}
if ! connected 2> /dev/null; then
  echo "no network namespaces here: two machines are not tested"
  ((failures == 0)) && exit 77
  finish
fi
for i in 0 1; do
  letter=$([[ $i == 0 ]] && echo a || echo b)
  ip -n "${spaces[i]}" address add "10.77.0.$((i + 1))/24" dev "p$letter$$"
  ip -n "${spaces[i]}" link set "p$letter$$" up
  ip -n "${spaces[i]}" link set lo up
done
on() { ip netns exec "${spaces[$1]}" "${@:2}"; }
two_machines() {  # OUTPUT ARGUMENTS…
  local output="$1" node=()
  shift
  on 1 "$launch" --nodes 2 --node-rank 1 --rendezvous 10.77.0.1:7700 --servers 1 -n 1 paddle-train c.yaml parallel.data=2 --output "$output" "$@" > node1.out 2>&1 &
  local second=$!
  (ulimit -v 8000000; on 0 timeout 60 "$launch" --nodes 2 --rendezvous 10.77.0.1:7700 --servers 1 -n 1 --logs "$output-logs" paddle-train c.yaml parallel.data=2 --output "$output" "$@") > "$folder/out" 2> "$folder/error" ||
    fail "two machines, $output: $(cat node1.out)"
  wait $second || fail "the second machine of $output: $(cat node1.out)"
  same "$output"
}
two_machines machines
grep -q "server 0 of 2 at 10.77.0.1:.*; gRPC with TLS" machines-logs/server-0.log || fail "no TLS between machines: $(cat machines-logs/server-0.log)"
PADDLE_INSECURE_NETWORK=1 two_machines insecure parameter_server.channel=sockets
grep -q "rows are sent without encryption" insecure-logs/server-0.log || fail "it does not say that rows are sent without encryption"
finish
