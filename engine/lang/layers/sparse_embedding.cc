// `sparse_embedding`: an embedding whose table is addressed by any integers. It has no parameter of
// a fixed size, so it is a call of the host, which gives the rows, and not an operation.
#include <optional>
#include <string>
#include <vector>

#include "lang/eval/evaluation.h"
#include "lang/eval/shape_interpreter.h"
#include "lang/layers/initializer_words.h"

namespace paddle::lang {
namespace {

constexpr std::string_view kCallee = "sparse_embedding";
/// Rows of a new key, unless `weight_init` says otherwise. Those of `embedding` depend on the
/// number of rows, which a table does not have.
constexpr double kDefaultBound = 0.05;

enum Place : size_t { kX, kDim, kInit, kMask, kPool };

/// x, dim, weight_init, mask and pool.
std::vector<std::optional<Value>> bind(const Arguments& arguments) {
  if (arguments.positional.size() > 2)
    fail(ErrorCode::kConfig, kCallee, ": at most 2 arguments, found ", arguments.positional.size(),
         " (weight_init, mask and pool are given by name)");
  static const std::vector<std::string> kNames = {"x", "dim", "weight_init", "mask", "pool"};
  std::vector<std::optional<Value>> out = arguments.bind(kCallee, kNames);
  for (const size_t i : {kX, kDim})
    if (!out[i] || out[i]->is_none())
      fail(ErrorCode::kConfig, kCallee, ": '", kNames[i], "' is missing");
  return out;
}

/// "sum", "mean" or "none".
std::string pool_of(const std::optional<Value>& value, const Tensor& keys) {
  if (!value || value->is_none()) return "none";
  std::string word;
  if (const auto* text = value->get<std::string>()) word = *text;
  if (const auto* reference = value->get<Callable>()) word = reference->name;
  if (word != "sum" && word != "mean" && word != "none")
    fail(ErrorCode::kConfig, kCallee, ": pool must be sum, mean or none, found ",
         value->describe());
  if (word != "none" && keys.ndim() < 2)
    fail(ErrorCode::kConfig, kCallee, ": pool: ", word,
         " adds the rows of a sample; x has the type ", keys.type(),
         ", expected keys in two axes or more");
  return word;
}

int64_t width_of(const Value& value) {
  if (!value.is_integer() || value.is<bool>())
    fail(ErrorCode::kConfig, kCallee, ": dim must be an integer, found ", value.describe());
  if (value.integer() < 1)
    fail(ErrorCode::kConfig, kCallee, ": dim must be at least 1, found ", value.integer());
  return value.integer();
}

Initializer rows_of(const std::optional<Value>& value) {
  if (!value || value->is_none())
    return {Initializer::Kind::kUniform, -kDefaultBound, kDefaultBound, {}};
  const Initializer init = to_initializer(*value);
  if (!makes_rows(init))
    fail(ErrorCode::kConfig, kCallee, ": weight_init: ", init.text(),
         " depends on the number of rows; expected zeros, ones, a number, normal, "
         "truncated_normal or uniform");
  return init;
}

}  // namespace

Value Evaluation::call_sparse_embedding(Arguments arguments, const Site& site, Frame& frame) {
  const std::string path = variables_.layer_path(std::string(kCallee), arguments, site, frame);
  const LayerScope layer(*this, path);
  return with_location_scope(site.where, [&]() -> Value {
    const std::vector<std::optional<Value>> bound = bind(arguments);
    const Tensor keys = operations_.to_tensor(*bound[kX], site.where, kCallee);
    if (keys.dtype() != DType::kI64 && keys.dtype() != DType::kI32 && keys.dtype() != DType::kU64)
      fail(ErrorCode::kConfig, kCallee, ": x must be int32, int64 or uint64, found ", keys.type());
    const int64_t width = width_of(*bound[kDim]);
    const Initializer first = rows_of(bound[kInit]);
    const std::string pool = pool_of(bound[kPool], keys);
    Tensor mask;
    if (bound[kMask] && !bound[kMask]->is_none()) {
      mask = operations_.to_tensor(*bound[kMask], site.where, kCallee);
      if (mask.dtype() != DType::kBool || mask.ndim() != keys.ndim())
        fail(ErrorCode::kConfig, kCallee, ": mask must be bool in the shape of x, ", keys.type(),
             ", found ", mask.type());
    }
    Shape shape = keys.shape();
    shape.push_back(width);
    ParameterProvider& store = *options().store;
    Tensor rows = is_abstract() ? abstract_tensor({store.stored_dtype(DType::kF32), shape})
                                : store.table_rows(path, keys, width, DType::kF32, first, mask);
    const auto op = [&](const char* name, std::vector<Value> operands, NamedValues named = {}) {
      return operations_.op(name, std::move(operands), site.where, std::move(named)).tensor();
    };
    constexpr int64_t kLast = -1, kKeys = -2;
    if (mask.defined())
      rows = op("where", {op("unsqueeze", {mask, Value(kLast)}), rows, op("zeros_like", {rows})});
    if (pool == "sum" || (pool == "mean" && mask.defined()))
      rows = op("sum", {rows, Value(kKeys)});
    else if (pool == "mean")
      rows = op("mean", {rows, Value(kKeys)});
    if (pool == "mean" && mask.defined()) {
      const Tensor counts = op("sum", {op("cast", {mask, Value(text(rows.dtype()))}), Value(kLast)},
                               {{"keepdim", Value(true)}});
      rows = op("divide", {rows, op("maximum", {counts, Value(int64_t{1})})});
    }
    if (options().observer && !is_abstract())
      record({path, std::string(kCallee), false, 0, site.where, {keys.type()}, {rows.type()}, {}});
    return Value(rows);
  });
}

}  // namespace paddle::lang
