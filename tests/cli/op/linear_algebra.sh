#!/usr/bin/env bash
# Matrix decompositions: the same bits with any number of threads, typed errors for matrices that
# have none, and one line where LAPACK's module is missing.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
op="$bin/paddle-op"
cd "$folder" || exit 1

# Matrices on both sides of the size from which they are computed in their own type.
for call in "svd x=f32[40,5,4]" "svd x=f32[6,50,40]" "eigh x=c64[9,33,33]" "eig x=f32[5,40,40]" "qr x=c64[4,60,40]" \
  "lu x=f32[8,70,70]" "inv x=f32[7,65,65]" "matrix_exp x=f64[5,40,40]" "pinv x=f32[6,50,40]"; do
  for threads in 1 3; do
    # shellcheck disable=SC2086
    [[ "$(run_bounded "$op" run $call --threads $threads -o "$threads.npz" --overwrite)" == 0 ]] || fail "$call on $threads threads"
  done
  cmp -s 1.npz 3.npz || fail "$call: other bits on 3 threads than on 1"
done
# Calls of LAPACK at the same time do not disturb each other: a race shows in some of many calls.
quiet 0 "$op" run svd 'x=f32[200,50,40]' --threads 1 -o alone.npz
for _ in {1..8}; do
  quiet 0 "$op" run svd 'x=f32[200,50,40]' --threads 6 -o together.npz --overwrite
  cmp -s alone.npz together.npz || fail "svd: other bits in parallel with other calls"
done

for name in svd eigh eig pinv; do
  expect 4 "$name: a matrix has elements that are not finite" "$op" run "$name" 'x=f32[2,2](1,2,3,inf)'
done
expect 4 "inv: a matrix is singular" "$op" run inv 'x=f32[2,2](1,2,2,4)'
expect 4 "solve: a matrix is singular" "$op" run solve 'x=c64[2,2]{0,0}' 'y=c64[2,1]'
expect 4 "cholesky: a matrix is not positive definite" "$op" run cholesky 'x=f64[2,2](1,2,2,1)'
expect 2 "expected square matrices" "$op" run eig 'x=f32[2,3]'
PADDLE_LAPACK_MODULE="$folder/none.so" expect 6 "svd: this installation has no LAPACK: $folder/none.so" "$op" run svd 'x=f32[2,2]'
quiet 0 "$op" run svd 'x=f32[0,3]'
quiet 0 "$op" run det 'x=f32[3,0,0]'
finish
