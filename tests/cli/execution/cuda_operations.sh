#!/usr/bin/env bash
# Operations of sizes that need several blocks or launches, and errors in operands, on stand-ins for
# the driver and NVRTC, which run the kernels' text on the CPU: results and messages are the CPU's.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"

# Rows that are too long for ranks.
for order in "" descending=true; do
  for device in cpu cuda; do
    "$bin/paddle-op" run sort_pairs 'x=f32[2,4500]' $order limit=4400 --device "$device" \
      -o "$folder/sorted-$device.npz" --overwrite > /dev/null 2> "$folder/error" || fail "sort_pairs on $device:"
  done
  cmp -s "$folder/sorted-cpu.npz" "$folder/sorted-cuda.npz" || fail "sort_pairs $order differs from the CPU:"
done
# Selections, counts and groups of several chunks.
for call in "masked_select x=f32[3,5000] mask=bool[5000]" "nonzero_rows x=i32[2,3,1500]{0,2}" "nonzero_rows x=f32[0,3]" \
  "unique x=i32[9000]{0,50} return_index=true return_inverse=true return_counts=true" \
  "unique x=i64[300,2]{0,5} axis=0 return_inverse=true dtype=int32" "unique x=f32[0]" \
  "unique_consecutive x=i32[4000]{0,2} return_inverse=true return_counts=true" "mode x=i64[3,5000,2]{0,9} axis=1" \
  "histogram input=f32[3000] bins=20" "histogram input=f64[500] bins=7 min=-1 max=1.5 density=true weight=f64[500]" \
  "bincount x=i32[5000]{0,40} weights=f32[5000] minlength=60" "bincount x=i64[0]" \
  "graph_reduce x=f32[3000,5] targets=i64[9000]{0,40} sources=i64[9000]{0,3000} count=40 reduce=max" \
  "graph_reduce x=f32[2,9000,5] targets=i32[2,9000]{0,40} count=41 reduce=mean" \
  "segment_pool data=i32[9000,3] segment_ids=i64[9000]{0,70} reduce=sum" "segment_pool data=f32[0,3] segment_ids=i64[0]" \
  "segment_reduce data=f64[5000,2] segment_ids=i64[5000]{0,9} count=12 reduce=min" \
  "sequence_rows lengths=i64[700]{0,9}" "concat_ranges starts=i64[700]{0,9} lengths=i64[700]{0,9}" \
  "expert_order index=i32[3000,3]{0,12} count=13" "sparse_linear_index indices=i64[2,5000]{0,70} shape=[70,90]"; do
  for device in cpu cuda; do
    # shellcheck disable=SC2086
    "$bin/paddle-op" run $call --device "$device" -o "$folder/selected-$device.npz" --overwrite \
      > /dev/null 2> "$folder/error" || fail "$call on $device:"
  done
  cmp -s "$folder/selected-cpu.npz" "$folder/selected-cuda.npz" || fail "$call differs from the CPU:"
done
# Channels of several chunks.
for shape in NCHW:4,3,64,64 NHWC:4,64,64,3; do
  for device in cpu cuda; do
    given=("data_format=${shape%:*}" "x=f32[${shape#*:}]" 'weight=f32[3]' --device "$device" --overwrite)
    "$bin/paddle-op" run batch_norm "${given[@]}" 'running_mean=f32[3]' 'running_var=f32[3]{0.5,2}' 'bias=f32[3]' training=true \
      -o "$folder/norm-$device.npz" > /dev/null 2> "$folder/error" || fail "batch_norm $shape on $device:"
    "$bin/paddle-op" run batch_norm_grad "${given[@]}" "grad=f32[${shape#*:}]" 'mean=f32[3]' 'rstd=f32[3]{0.5,2}' \
      -o "$folder/grad-$device.npz" > /dev/null 2> "$folder/error" || fail "batch_norm_grad $shape on $device:"
  done
  python3 - "$folder" <<'P' || fail "batch_norm $shape differs from the CPU:"
import struct, sys, zipfile
def arrays(path):
    out = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            raw = z.read(name)
            data = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
            out[name] = struct.unpack(f"<{len(data) // 4}f", data)
    return out
for kind in ("norm", "grad"):
    cpu, cuda = (arrays(f"{sys.argv[1]}/{kind}-{device}.npz") for device in ("cpu", "cuda"))
    assert cpu.keys() == cuda.keys() and max(map(len, cpu.values())) == 4 * 3 * 64 * 64, cpu.keys()
    for name in cpu:
        largest = max(map(abs, cpu[name]))
        assert largest > 0.1, (kind, name)
        assert max(abs(a - b) for a, b in zip(cpu[name], cuda[name])) <= 1e-5 * largest, (kind, name)
P
done
# Errors in operands.
for call in "graph_gather x=f32[30,5] index=i64(4,31)" "graph_dot x=f32[30,6] y=f32[20,6] sources=i64(4,3) targets=i64(-1,3) heads=2" \
  "graph_reduce x=f32[3,5] targets=i64(4,0,1) count=4" "graph_reduce x=f32[3,5] targets=i64(3) sources=i64(3) count=4" \
  "segment_pool data=i32[2,3] segment_ids=i64(1,-2)" "segment_reduce data=i32[2,3] segment_ids=i64(1,7) count=3" \
  "sequence_rows lengths=i64(3,-4)" "sequence_rows lengths=i64(3,4) total=9" "concat_ranges starts=i64(0) lengths=i64(1099511627777)" \
  "expert_order index=i64[2,1](3,4) count=4" "expert_rows x=f32[3,4] order=i64(3,4,0,1,2,9) k=2" \
  "expert_sum y=f32[6,4] order=i64(3,4,0,1,2,2) k=2" "gather_tree ids=i64[3,1,2]{0,5} parents=i64[3,1,2]{4,5}" \
  "sparse_linear_index indices=i64[2,1](3,5) shape=[5,5]"; do
  for device in cpu cuda; do
    # shellcheck disable=SC2086
    "$bin/paddle-op" run $call --device "$device" > /dev/null 2> "$folder/error-$device"
    [[ $? == 4 ]] || fail "$call on $device: another exit code:"
  done
  cmp -s "$folder/error-cpu" "$folder/error-cuda" || fail "$call has another message than on the CPU: $(cat "$folder/error-cuda")"
done
finish
