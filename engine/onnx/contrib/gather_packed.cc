// GatherPacked of com.microsoft: embedding lookup in a block-quantized table (formats/gguf).

#include "base/limits.h"
#include "formats/gguf/blocks.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxConstantBytes = int64_t{256} << 20;

/// Dequantized rows [ids, columns] of a table [rows, bytes]; row 0 for ids out of range.
Array dequantize_rows(const NodeCall& c, const Array& table,
                      const formats::gguf::BlockFormat& format, int64_t columns,
                      const std::vector<int64_t>& ids) {
  const int64_t rows = table.shape[0], bytes = table.shape[1];
  const auto count = static_cast<int64_t>(ids.size());
  c.check(count <= limits().memory / 2 / static_cast<int64_t>(sizeof(float)) / columns, count,
          " rows of ", columns, " take more than half of the memory");
  c.check(rows > 0 || count == 0, "the table has no rows");
  Array out = Array::empty(DType::kF32, {count, columns});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = ids[static_cast<size_t>(i)];
    const uint8_t* from = table.data<uint8_t>() + (id < 0 || id >= rows ? 0 : id) * bytes;
    float* to = out.data<float>() + i * columns;
    for (int64_t k = 0; k < columns; k += format.values, from += format.bytes)
      format.dequantize(from, to + k);
  }
  return out;
}

/// A table that is small enough is dequantized once, as a constant of the graph.
Values gather_packed(NodeCall& c) {
  const int64_t type = c.int_attr("packed_type", -1), columns = c.int_attr("K", 0);
  const formats::gguf::BlockFormat* format = formats::gguf::find_block_format(type);
  c.check(format != nullptr, "packed_type ", type, " is not supported");
  c.check(columns > 0 && columns % format->values == 0, "K is ", columns,
          ", not a multiple of the block size ", format->values);
  const DType dtype = c.dtype_attr("output_dtype", DType::kBF16);
  c.check(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16,
          "the output cannot be ", text(dtype));
  const Tensor& indices = c.tensor(1);
  c.check(indices.dtype() == DType::kI32 || indices.dtype() == DType::kI64, "the indices are ",
          text(indices.dtype()));
  const Array table = c.constant_array(0);
  c.check(table.dtype == DType::kU8 && table.ndim() == 2, "the table is ", c.tensor(0).type(),
          ", not uint8 [rows, bytes per row]");
  const int64_t rows = table.shape[0];
  c.check(table.shape[1] % format->bytes == 0 &&
              table.shape[1] / format->bytes == columns / format->values,
          "a row of ", columns, " values does not have ", table.shape[1], " bytes");
  Shape shape = indices.shape();
  shape.push_back(Dim(columns));
  Tensor y;
  const bool small =
      rows > 0 && rows <= kMaxConstantBytes / static_cast<int64_t>(sizeof(float)) / columns;
  if (c.value(1).is_concrete() || !small) {
    y = Tensor(dequantize_rows(c, table, *format, columns, c.constant_ints(1)));
  } else {
    std::vector<int64_t> all;
    for (int64_t r = 0; r < rows; ++r) all.push_back(r);
    const Tensor ids = ops::reshape(ops::cast(indices, DType::kI64), Shape{Dim(-1)});
    const Tensor inside = ops::logical_and(ops::greater_equal(ids, int_scalar(0)),
                                           ops::less_than(ids, int_scalar(rows)));
    y = ops::index_select(Tensor(dequantize_rows(c, table, *format, columns, all)),
                          ops::where(inside, ids, int_scalar(0)), 0);
  }
  return {ops::cast(ops::reshape(y, shape), dtype)};
}

}  // namespace

OperatorTable contrib_gather_packed_operators() {
  static constexpr Operator operators[] = {{"GatherPacked", 1, gather_packed}};
  return operators;
}

}  // namespace paddle::onnx
