"""Parquet files of every codec, page version and encoding that the reader takes, and some that it
rejects: python3 make_parquet.py (needs pyarrow). Row i of the table is a function of i, which the
test computes, too."""
import datetime
import os

import pyarrow as pa
import pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))
ROWS = 300


def cell(i, value):
    return None if i % 7 == 3 else value


table = pa.table({
    "flag": pa.array([i % 3 == 0 for i in range(ROWS)], pa.bool_()),
    "small": pa.array([i % 11 - 5 for i in range(ROWS)], pa.int8()),
    "unsigned": pa.array([4000000000 + i for i in range(ROWS)], pa.uint32()),
    "big": pa.array([cell(i, i * 10**12 - 5) for i in range(ROWS)], pa.int64()),
    "single": pa.array([i / 8 for i in range(ROWS)], pa.float32()),
    "double": pa.array([cell(i, i / 10) for i in range(ROWS)], pa.float64()),
    "word": pa.array([cell(i, f"w{i % 5},é") for i in range(ROWS)], pa.string()),
    "day": pa.array([datetime.date(2024, 2, 27) + datetime.timedelta(i) for i in range(ROWS)]),
})
group = dict(row_group_size=120)
for codec in ("none", "snappy", "gzip", "zstd"):
    pq.write_table(table, f"{here}/{codec}.parquet", compression=codec, **group)
pq.write_table(table, f"{here}/plain.parquet", compression="snappy", use_dictionary=False, **group)
pq.write_table(table, f"{here}/version2.parquet", compression="snappy", data_page_version="2.0",
               data_page_size=400, **group)
nested = pa.table({"x": pa.array([1.5, 2.5]), "list": pa.array([[1], [2, 3]]),
                   "pair": pa.array([{"a": 1}, {"a": 2}])})
pq.write_table(nested, f"{here}/nested.parquet", compression="none")
delta = pa.table({"x": pa.array(range(50), pa.int64())})
pq.write_table(delta, f"{here}/delta.parquet", compression="none", use_dictionary=False,
               column_encoding={"x": "DELTA_BINARY_PACKED"})
