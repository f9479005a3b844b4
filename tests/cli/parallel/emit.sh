#!/usr/bin/env bash
# paddle-launch --emit: what it prints for Kubernetes and Slurm is run here, by a script that does
# what they would do, and gives the files of the same run by paddle-launch.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
cd "$folder" || exit 1
python3 -c '
with open("rows.csv", "w") as f:
    f.write("user,label\n")
    for i in range(640): f.write(f"{i * i % 97},{i % 3 % 2}\n")'
cat > c.yaml <<'Y'
model:
  name: clicks
  inputs: {user: "int64[batch]"}
  model: |
    u = sparse_embedding(user, 4, name="user")
    logit = sum(linear(u, 1), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 32
  train: {kind: csv, path: rows.csv, fields: [{name: user, scalar: true, dtype: int64}, {name: label, scalar: true, dtype: float32}]}
train: {epochs: 2}
Y
ok "$launch" --servers 2 -n 2 paddle-train c.yaml parallel.data=2 --output wanted
same() {
  cmp -s "$1/checkpoints/40/model.safetensors" wanted/checkpoints/40/model.safetensors || fail "$1 differs"
}
# Slurm: srun starts the tasks of one part of the job, scontrol lists hosts.
mkdir fake
cat > fake/scontrol <<'S'
#!/bin/bash
for host in ${3//,/ }; do echo "$host"; done
S
cat > fake/srun <<'S'
#!/bin/bash
part="${1#--het-group=}"
shift
for i in 0 1; do
  SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=$part SLURM_STEP_NODELIST=127.0.0.1 "$@" &
  tasks+=($!)
done
for task in "${tasks[@]}"; do wait "$task" || exit 1; done
S
chmod +x fake/*
"$launch" --emit slurm --name ctr --servers 2 -n 2 paddle-train c.yaml parallel.data=2 --output 'slurm run' > job.sh || fail "--emit slurm"
grep -q '^#SBATCH hetjob' job.sh || fail "the job has one part"
expect 1 "PADDLE_TLS_CA: path of a PEM file" env PATH="$folder/fake:$bin:$PATH" SLURM_JOB_NODELIST_HET_GROUP_1=127.0.0.2,127.0.0.3 bash job.sh
export PADDLE_TLS_CA=ca.pem PADDLE_TLS_CERTIFICATE=me.pem PADDLE_TLS_KEY=me.key  # for other machines
ok env PATH="$folder/fake:$bin:$PATH" SLURM_JOB_NODELIST_HET_GROUP_1=127.0.0.2,127.0.0.3 bash job.sh
same "slurm run"
unset PADDLE_TLS_CA PADDLE_TLS_CERTIFICATE PADDLE_TLS_KEY
"$launch" --emit slurm --insecure-network --servers 2 -n 2 paddle-train c.yaml > insecure.sh || fail "--emit slurm --insecure-network"
if grep -q PADDLE_TLS insecure.sh || ! grep -q '^export PADDLE_INSECURE_NETWORK=1$' insecure.sh; then fail "a job without TLS"; fi
# Kubernetes: the pods of the StatefulSet and of the Job, whose names mean addresses of this machine.
"$launch" --emit kubernetes --name ctr --image a:1 --servers 2 -n 2 paddle-train c.yaml parallel.data=2 --output pods > objects.yaml ||
  fail "--emit kubernetes"
cat > pods.py <<'P'
import os, subprocess, sys
try:
    import yaml
except ImportError:
    sys.exit(77)
objects = list(yaml.safe_load_all(open("objects.yaml")))
assert [o["kind"] for o in objects] == ["Service", "Service", "StatefulSet", "Job"], objects
addresses = {"ctr-servers-0.ctr-servers": "127.0.0.4", "ctr-servers-1.ctr-servers": "127.0.0.5", "ctr-workers-0.ctr-workers": "127.0.0.1"}
def start(pod, index):
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "a:1"
    environment = dict(os.environ, JOB_COMPLETION_INDEX=str(index))
    for each in container["env"]:
        if "value" in each: value = each["value"]
        elif "secretKeyRef" in each["valueFrom"]: value = "a-secret"
        else:
            assert each["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
            value = str(index)
        for name, address in addresses.items(): value = value.replace(name, address)
        environment[each["name"]] = value
    return subprocess.Popen(container["command"], env=environment)
for each in objects[2:]:  # the certificates are where the environment says
    pod = each["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    paths = {e["name"]: e["value"] for e in container["env"] if e["name"].startswith("PADDLE_TLS")}
    assert paths == {"PADDLE_TLS_CA": "/tls/ca.crt", "PADDLE_TLS_CERTIFICATE": "/tls/tls.crt", "PADDLE_TLS_KEY": "/tls/tls.key"}
    assert {"name": "tls", "mountPath": "/tls"} in container["volumeMounts"]
    assert {"name": "tls", "secret": {"secretName": "ctr-tls"}} in pod["volumes"]
servers, job = objects[2]["spec"], objects[3]["spec"]
assert servers["serviceName"] == objects[0]["metadata"]["name"] and job["template"]["spec"]["subdomain"] == objects[1]["metadata"]["name"]
for service, of in zip(objects[:2], (servers, job)):
    assert service["spec"]["selector"].items() <= of["template"]["metadata"]["labels"].items()
pods = [start(servers["template"], i) for i in range(servers["replicas"])] + [start(job["template"], i) for i in range(job["completions"])]
sys.exit(max(abs(p.wait()) for p in pods))
P
status="$(PATH="$bin:$PATH" run_bounded python3 pods.py)"
if [[ "$status" == 77 ]]; then echo "PyYAML is missing: the objects were not read"; elif [[ "$status" == 0 ]]; then same pods; else fail "the pods ended with $status"; fi
expect 2 "--name" "$launch" --emit slurm --name 'a b' --servers 1 -n 1 paddle-train c.yaml
expect 2 "give --servers" "$launch" --emit slurm -n 1 paddle-train c.yaml
finish
