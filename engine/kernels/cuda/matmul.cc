#include "kernels/cuda/matmul.h"

#include <algorithm>

#include "kernels/cuda/device_types.h"
#include "kernels/cuda/prepare.h"
#include "kernels/linalg/matmul_shape.h"
#include "ops/generated/linalg.h"

namespace paddle::cuda {
namespace {

constexpr size_t kBatchAxes = MatmulArguments::kBatchAxes;
constexpr int64_t kTile = 64;

/// Integers wrap around, so any type of 64 bits has their low bits; bool is whether the number of
/// pairs is not 0.
const char* sum_type(DType type) {
  if (is_complex(type)) return group_type(type);
  if (!device_type(type)) return nullptr;
  if (const char* const name = compute_name(type)) return name;
  return "int64_t";
}

/// Bytes of a sum of that type.
int64_t sum_bytes(DType type) {
  if (is_complex(type)) return item_size(type);
  return type == DType::kF64 || !is_float(type) ? 8 : 4;
}

int64_t tiles_of(int64_t size) { return (size + kTile - 1) / kTile; }

int64_t count_of(const Dims& batch) { return element_count(std::span<const int64_t>(batch)); }

Dims row_major(const Dims& shape, int64_t inner) {
  Dims strides(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; inner *= shape[axis]) strides[axis] = inner;
  return strides;
}

std::unique_ptr<Kernel> prepare_product(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  const auto product = product_of(request);
  const auto launch = product ? ProductLaunch::of(request, *product, true) : std::nullopt;
  if (!launch) return nullptr;
  return make_kernel(
      [launch = *launch, biased = product->bias.has_value()](
          const RunContext& context, void* const* operands, void* const* results) {
        launch.launch(context.stream, operands[0], operands[1], biased ? operands[2] : nullptr,
                      results[0], context.scratch);
      },
      launch->scratch_bytes(), "cuda:matmul");
}

}  // namespace

bool is_product(const Op& op) { return op.name() == "matmul" || op.name() == "linear"; }

std::optional<Product> product_of(const KernelRequest& request) {
  const bool linear = request.op.name() == "linear";
  const Layout &x = request.operands[0], &y = request.operands[1];
  const auto shape = linear ? cpu::MatmulShape::of(x, y, false, false)
                            : cpu::MatmulShape::of(x, y, MatmulAttrs(request.attrs).transpose_x,
                                                   MatmulAttrs(request.attrs).transpose_y);
  Product product;
  product.x = x.dtype;
  product.y = y.dtype;
  product.out = request.results[0].dtype;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.x_row = shape.x_row;
  product.x_column = shape.x_column;
  product.y_row = shape.y_row;
  product.y_column = shape.y_column;
  product.out_row = shape.n;
  product.batch = shape.batch;
  product.x_batch = shape.x_batch;
  product.y_batch = shape.y_batch;
  product.out_batch = row_major(shape.batch, shape.m * shape.n);
  if (!linear || request.operands.size() < 3 || !request.operands[2].present) return product;
  const Layout& bias = request.operands[2];
  if (bias.size() != shape.n || bias.shape.empty() || bias.shape.back() != shape.n ||
      !bias.is_contiguous())
    return std::nullopt;
  product.bias = bias.dtype;
  return product;
}

std::optional<ProductLaunch> ProductLaunch::divided(const Product& product, bool split) {
  const char *const x = group_type(product.x), *const y = group_type(product.y),
                    *const out = group_type(product.out);
  const char* const sum = sum_type(product.x);
  const char* const bias = product.bias ? group_type(*product.bias) : out;
  if (!x || !y || !out || !sum || !bias || product.batch.size() > kBatchAxes ||
      is_float(product.x) != is_float(product.y) ||
      is_complex(product.x) != is_complex(product.y) ||
      is_complex(product.x) != is_complex(product.out))
    return std::nullopt;
  const int64_t batches = count_of(product.batch);
  const int64_t tiles = tiles_of(product.m) * tiles_of(product.n) * batches;
  constexpr int64_t kWantedBlocks = kSplitCounters, kMinChunk = 128, kMaxRows = 65535;
  ProductLaunch launch;
  launch.product_ = product;
  launch.chunk_ = std::max<int64_t>(1, product.k);
  if (split && tiles < kWantedBlocks && product.k >= 2 * kMinChunk) {
    const int64_t wanted = std::min(kWantedBlocks / tiles, product.k / kMinChunk);
    if (wanted > 1) {
      launch.chunk_ = ((product.k + wanted - 1) / wanted + 15) / 16 * 16;
      launch.chunks_ = (product.k + launch.chunk_ - 1) / launch.chunk_;
    }
  }
  if (batches * launch.chunks_ > kMaxRows) {
    launch.chunks_ = 1;
    launch.chunk_ = std::max<int64_t>(1, product.k);
    if (batches > kMaxRows) return std::nullopt;
  }
  if (launch.chunks_ > 1)
    launch.scratch_ = static_cast<size_t>(launch.chunks_ * batches * product.m * product.n *
                                          sum_bytes(product.x));
  launch.types_ = str(sum, ", ", x, ", ", y, ", ", bias);
  return launch;
}

std::optional<ProductLaunch> ProductLaunch::of(const KernelRequest& request, const Product& product,
                                               bool split) {
  auto launch = divided(product, split);
  if (!launch) return std::nullopt;
  const std::string call = str("matmul_tile<", launch->types_, ", ", group_type(product.out), ">");
  launch->tile_ = Entry(
      start_program(request,
                    number_text(request, "matmul", entry_text("matmul", "MatmulArguments", call))),
      "matmul");
  return launch;
}

int64_t ProductLaunch::row_tiles() const { return tiles_of(product_.m); }
int64_t ProductLaunch::column_tiles() const { return tiles_of(product_.n); }
int64_t ProductLaunch::batches() const { return count_of(product_.batch); }

MatmulArguments ProductLaunch::batch_arguments(paddle_stream stream, const Dims& batch,
                                               const void* x, const void* y, const void* bias,
                                               void* out, std::byte* scratch) const {
  MatmulArguments arguments{};
  arguments.x = x;
  arguments.y = y;
  arguments.bias = bias;
  arguments.out = out;
  arguments.partial = scratch;
  arguments.counters = stream->counters;
  arguments.m = product_.m;
  arguments.n = product_.n;
  arguments.k = product_.k;
  arguments.chunk = chunk_;
  arguments.chunks = chunks_;
  arguments.batches = count_of(batch);
  arguments.x_row = product_.x_row;
  arguments.x_column = product_.x_column;
  arguments.y_row = product_.y_row;
  arguments.y_column = product_.y_column;
  arguments.out_row = product_.out_row;
  arguments.out_column = product_.out_column;
  for (size_t i = 0; i < kBatchAxes; ++i) arguments.batch[i] = 1;
  const size_t first = kBatchAxes - batch.size();
  for (size_t i = 0; i < batch.size(); ++i) {
    arguments.batch[first + i] = batch[i];
    arguments.x_batch[first + i] = product_.x_batch[i];
    arguments.y_batch[first + i] = product_.y_batch[i];
    arguments.out_batch[first + i] = product_.out_batch[i];
  }
  arguments.factor = product_.factor;
  return arguments;
}

void ProductLaunch::launch_batches(paddle_stream stream, const Dims& batch, const void* x,
                                   const void* y, const void* bias, void* out,
                                   std::byte* scratch) const {
  const MatmulArguments arguments = batch_arguments(stream, batch, x, y, bias, out, scratch);
  tile_.launch(stream, tiles(), arguments.batches * chunks_, &arguments);
}

std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request) {
  return prepare_product(request);
}

std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request) {
  return prepare_product(request);
}

}  // namespace paddle::cuda
