// Rules of generation.yaml.

#include <algorithm>
#include <iterator>

#include "ops/core/cost.h"
#include "ops/core/rules.h"
#include "ops/generated/generation.h"
#include "ops/generated/generation_rules.h"
#include "ops/generation/packed_format.h"

namespace paddle {
namespace {

constexpr PackedFormat kFormats[] = {
    {"q4_0", 32, 18}, {"q4_1", 32, 20},   {"q5_0", 32, 22},   {"q5_1", 32, 24},
    {"q8_0", 32, 34}, {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210},
};

}  // namespace

const PackedFormat* find_packed_format(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const PackedFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

namespace rules {
namespace {

/// The width of a cache's heads, without the scales of int8.
Dim cached_width(const Dim& width, DType dtype) {
  return dtype == DType::kI8 ? width - kCacheScaleBytes : width;
}

/// Checks the blocks of a paged cache, where they are given.
void check_blocks(InferContext& c, size_t operand) {
  if (c.has(operand))
    c.check(c.rank(operand) == 1, "blocks must be [blocks], not ", c.type(operand));
}

/// Checks rows of `features` weights in this format.
void check_weight(InferContext& c, const TensorType& type, const std::string& format,
                  int64_t features) {
  const Shape& weight = type.shape;
  c.check(weight.size() == 2, "weight must be [rows, features], not ", type);
  c.check(features > 0, "features must be positive, not ", features);
  if (format == "float") {
    c.check(is_float(type.dtype), "weight must be of a floating type in the format float, not ",
            type);
    c.require_equal(weight[1], features, "weight does not have `features` columns");
    return;
  }
  const PackedFormat* packed = find_packed_format(format);
  c.check(packed != nullptr, "there is no format '", format, "'");
  c.check(type.dtype == DType::kU8, "weight must be uint8 in the format ", format, ", not ", type);
  c.check(features % packed->values == 0, "features, ", features, ", is not a multiple of ",
          packed->values);
  c.require_equal(weight[1], features / packed->values * packed->bytes,
                  "rows of weight do not have the bytes of `features` weights");
}

/// Checks the operand x of products with weights of `features` columns.
void check_activations(InferContext& c, int64_t features, int64_t bits) {
  const Shape& shape = c.shape(0);
  c.check(!shape.empty(), "x must be [..., features], not ", c.type(0));
  c.require_equal(shape.back(), features, "x does not have `features` columns");
  c.check(bits == 8 || bits == 16, "activation_bits must be 8 or 16, not ", bits);
}

/// The result of a product with a weight and its bias, if any.
void add_product(InferContext& c, const TensorType& weight, const TensorType* bias,
                 const std::string& format, int64_t features) {
  check_weight(c, weight, format, features);
  if (bias) {
    c.check(bias->shape.size() == 1, "bias must be [rows of weight], not ", *bias);
    c.require_equal(bias->shape[0], weight.shape[0], "bias and weight differ in rows");
  }
  Shape shape = c.shape(0);
  shape.back() = weight.shape[0];
  c.result(DType::kF32, shape);
}

}  // namespace

void infer_cache_append(InferContext& c) {
  const bool keys = c.attrs_as<CacheAppendAttrs>().keys;
  const Shape cache = c.shape(0), value = c.shape(1);
  c.check(cache.size() == (keys ? 4U : 3U), "cache must be ",
          keys ? "[blocks, heads, dim, 16]" : "[slots, heads, dim]", ", not ", c.type(0));
  c.check(value.size() == 3, "value must be [tokens, heads, dim], not ", c.type(1));
  c.check(c.rank(2) == 1, "slots must be [tokens], not ", c.type(2));
  c.require_equal(c.shape(2)[0], value[0], "slots and value differ in tokens");
  c.require_equal(cache[1], value[1], "cache and value differ in heads");
  c.require_equal(cached_width(cache[2], c.dtype(0)), value[2], "cache and value differ in dim");
  if (keys) c.require_equal(cache[3], kKeyBlock, "a cache of keys has blocks of 16 tokens");
  check_blocks(c, 3);
  c.result(c.dtype(0), cache);
}

void infer_cached_attention(InferContext& c) {
  const auto attrs = c.attrs_as<CachedAttentionAttrs>();
  const Shape query = c.shape(0), keys = c.shape(1), values = c.shape(2);
  c.check(query.size() == 3, "query must be [tokens, heads, dim], not ", c.type(0));
  c.check(keys.size() == 4, "key_cache must be [blocks, heads, dim, 16], not ", c.type(1));
  c.check(values.size() == 3 && c.dtype(2) == c.dtype(1),
          "value_cache must be [slots, heads, dim] of the dtype of key_cache, not ", c.type(2));
  for (const size_t i : {size_t{3}, size_t{4}}) {
    c.check(c.rank(i) == 1, c.op().operands()[i].name, " must be [tokens], not ", c.type(i));
    c.require_equal(c.shape(i)[0], query[0], "starts or lengths differ from query in tokens");
  }
  c.require_equal(keys[3], kKeyBlock, "a cache of keys has blocks of 16 tokens");
  c.require_equal(keys[0] * kKeyBlock, values[0], "key_cache and value_cache differ in slots");
  c.require_equal(keys[1], values[1], "key_cache and value_cache differ in heads");
  c.require_equal(cached_width(keys[2], c.dtype(1)), query[2], "query and key_cache differ in dim");
  c.check(query[1].is_constant() && keys[1].is_constant() && keys[1].value() > 0 &&
              query[1].value() % keys[1].value() == 0,
          "heads of query, ", query[1], ", are not a multiple of those of key_cache, ", keys[1]);
  if (c.has(5)) {
    c.check(c.rank(5) == 1, "slopes must be [heads], not ", c.type(5));
    c.require_equal(c.shape(5)[0], query[1], "slopes and query differ in heads");
  }
  check_blocks(c, 6);
  if (c.has(7)) {
    c.check(c.rank(7) == 1, "sinks must be [heads], not ", c.type(7));
    c.require_equal(c.shape(7)[0], query[1], "sinks and query differ in heads");
  }
  c.check(attrs.window >= 0, "window must not be negative, but is ", attrs.window);
  c.check(attrs.softcap >= 0, "softcap must not be negative, but is ", attrs.softcap);
  c.result(DType::kF32, {query[0], query[1], cached_width(values[2], c.dtype(2))});
}

void infer_packed_linear(InferContext& c) {
  const auto attrs = c.attrs_as<PackedLinearAttrs>();
  check_activations(c, attrs.features, attrs.activation_bits);
  add_product(c, c.type(1), c.has(2) ? &c.type(2) : nullptr, attrs.format, attrs.features);
}

void infer_packed_linears(InferContext& c) {
  const auto attrs = c.attrs_as<PackedLinearsAttrs>();
  check_activations(c, attrs.features, attrs.activation_bits);
  const size_t count = c.list_size(1), biases = c.list_size(2);
  c.check(count > 0, "no weights are given");
  c.check(attrs.formats.size() == count, "there are ", attrs.formats.size(), " formats for ", count,
          " weights");
  c.check(biases == 0 || biases == count, "there are ", biases, " biases for ", count, " weights");
  if (c.has(3)) {
    c.check(c.rank(3) == 1, "norm must be [features], not ", c.type(3));
    c.require_equal(c.shape(3)[0], attrs.features, "norm does not have `features` values");
  }
  for (size_t i = 0; i < count; ++i)
    add_product(c, c.list_type(1, i), biases > 0 ? &c.list_type(2, i) : nullptr, attrs.formats[i],
                attrs.features);
}

double cost_packed_linear(const Attrs&, const std::vector<Dims>& operands,
                          const std::vector<Dims>&) {
  return 2 * element_product(operands[0]) * static_cast<double>(operands[1][0]);
}

double cost_packed_linears(const Attrs& attrs, const std::vector<Dims>& operands,
                           const std::vector<Dims>&) {
  double columns = 0;
  for (int32_t i = 0; i < attrs.list_sizes[0]; ++i)
    columns += static_cast<double>(operands[1 + static_cast<size_t>(i)][0]);
  return 2 * element_product(operands[0]) * columns;
}

void infer_packed_matmul(InferContext& c) {
  const auto attrs = c.attrs_as<PackedMatmulAttrs>();
  check_weight(c, c.type(1), attrs.format, attrs.features);
  const Dim rows = c.shape(1)[0], features = attrs.features;
  Shape shape = c.shape(0);
  c.check(!shape.empty(), "x must be [..., ", attrs.transpose ? "rows of weight" : "features",
          "], not ", c.type(0));
  c.require_equal(shape.back(), attrs.transpose ? rows : features,
                  attrs.transpose ? "x does not have a column for each row of weight"
                                  : "x does not have `features` columns");
  shape.back() = attrs.transpose ? features : rows;
  c.result(DType::kF32, shape);
}

double cost_packed_matmul(const Attrs&, const std::vector<Dims>& operands,
                          const std::vector<Dims>& results) {
  return 2 * element_product(operands[0]) * static_cast<double>(results[0].back());
}

Tensors vjp_packed_matmul(VjpContext& c) {
  const auto attrs = c.attrs_as<PackedMatmulAttrs>();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::packed_matmul(c.cotangent(), c.operand(1), attrs.format, attrs.features,
                                !attrs.transpose);
  return out;
}

void infer_packed_rows(InferContext& c) {
  const auto attrs = c.attrs_as<PackedRowsAttrs>();
  check_weight(c, c.type(0), attrs.format, attrs.features);
  Shape shape = {c.shape(0)[0]};
  if (c.has(1)) shape = c.shape(1);
  shape.push_back(attrs.features);
  c.result(DType::kF32, shape);
}

}  // namespace rules
}  // namespace paddle
