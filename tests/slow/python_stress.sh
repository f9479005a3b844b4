#!/usr/bin/env bash
# 40 programs (PADDLE_TEST_RUNS) with threads, compiled functions and a loader's processes, which end, exit, are
# interrupted or killed at random times: none hangs or crashes, and none leaves processes or shared memory.
source tests/python/setup.bash
runs="${PADDLE_TEST_RUNS:-40}"
before="$(find /dev/shm -name 'paddle_*_*' 2> /dev/null | wc -l)"
for ((i = 0; i < runs; ++i)); do
  status=0
  PYTHONPATH="$build/python" timeout 60 "$base_python" tests/python/stress.py "$i" > /dev/null 2>&1 || status=$?
  # 1: KeyboardInterrupt, 130: the same during the end of Python, 143: SIGTERM
  case $status in
    0 | 1 | 130 | 143) ;;
    *) fail "run $i has ended with status $status" ;;
  esac
done
sleep 3
if pgrep -f "multiprocessing.spawn" -P 1 > /dev/null; then fail "processes are left"; fi
after="$(find /dev/shm -name 'paddle_*_*' 2> /dev/null | wc -l)"
((after <= before)) || fail "$((after - before)) blocks of shared memory are left"
echo "$runs runs"
