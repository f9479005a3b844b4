#include "llm/loaded_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "ops/generated/linalg.h"
#include "ops/generated/nn.h"
#include "program/model_source.h"
#include "program/prediction.h"

namespace paddle::llm {

namespace {

const char* cache_dtype(CacheType cache) {
  switch (cache) {
    case CacheType::kBF16:
      return "bfloat16";
    case CacheType::kI8:
      return "int8";
    case CacheType::kF32:
      break;
  }
  return "float32";
}

/// A product with a matrix of weights, or a lookup in one.
struct MatrixUse {
  size_t weight;    ///< operand
  bool transposed;  ///< the matrix is [features, rows]
  bool lookup;
};

std::optional<MatrixUse> matrix_use(const ir::Operation& operation) {
  const std::string_view op = operation.op->name();
  if (op == "linear") return MatrixUse{1, true, false};
  if (op == "embedding" && !EmbeddingAttrs(operation.attrs).padding_idx)
    return MatrixUse{1, false, true};
  if (op != "matmul") return std::nullopt;
  const MatmulAttrs attrs(operation.attrs);
  if (attrs.transpose_x || operation.operands[0]->type.shape.size() < 2) return std::nullopt;
  return MatrixUse{1, !attrs.transpose_y, false};
}

/// Makes the caches of a function paged: adds the table of blocks to its inputs.
void use_blocks(ir::Function& function, int64_t blocks) {
  ir::Value* const table =
      function.add_input({ir::PortKind::kValue, "blocks"}, {DType::kI64, {Dim(blocks)}});
  ir::for_each_operation(function.body, [&](ir::Operation& operation) {
    const std::string_view op = operation.op->name();
    if (op == "cache_append") operation.operands.at(3) = table;
    if (op == "cached_attention") operation.operands.at(6) = table;
  });
}

}  // namespace

CacheType cache_type(const std::string& word) {
  if (word == "f32") return CacheType::kF32;
  if (word == "bf16") return CacheType::kBF16;
  if (word == "int8") return CacheType::kI8;
  fail(ErrorCode::kUsage, "--kv is '", word, "', expected f32, bf16 or int8");
}

Activations activations(const std::string& word) {
  if (word == "int8") return Activations::kInt8;
  if (word == "int16") return Activations::kInt16;
  if (word == "float32") return Activations::kFloat32;
  fail(ErrorCode::kUsage, "--activations is '", word, "', expected int8, int16 or float32");
}

LoadedModel::LoadedModel(const ModelFiles& files, Family family, const std::string& path,
                         program::LoadOptions options, Activations activations, WeightType weights)
    : name_(path.substr(path.find_last_of('/') + 1)),
      path_(path),
      config_(files.config),
      family_(std::move(family)),
      options_(std::move(options)),
      weights_(files, family_.rules, path, activations == Activations::kFloat32, weights),
      activations_(activations),
      context_(family_.context > 0 ? family_.context : files.context),
      end_tokens_(files.end_tokens) {
  // A tile of rows would be computed by other plans than a single row.
  options_.compile.batch_tiling = false;
}

std::shared_ptr<ir::Function> LoadedModel::trace(const CacheLayout& cache, Adapter* adapter) {
  program::LoadOptions options = options_;
  options.function = "step";
  options.overrides = family_.overrides;
  options.overrides.insert(options.overrides.end(), options_.overrides.begin(),
                           options_.overrides.end());
  options.overrides.push_back(str("params.cache_slots=", cache.slots));
  options.overrides.push_back(str("params.cache_type=\"'", cache_dtype(cache.type), "'\""));
  if (family_.takes_context)
    options.overrides.push_back(str("params.cache_context=", cache.context));
  program::ParameterStore store;
  store.initializes_random = false;
  store.preset = [&](const std::string& name, const Dims& shape,
                     DType dtype) -> std::optional<Array> {
    // Caches are states of a runner, matrices are packed once their uses are known.
    if (dtype != DType::kF32 || shape.size() >= 3) return Array::reserve(dtype, shape);
    if (shape.size() == 2) {
      weights_.check_present(name);
      return Array::reserve(dtype, shape);
    }
    auto [it, inserted] = floats_.try_emplace(name);
    if (inserted) it->second = weights_.read(name, shape);
    return it->second;
  };
  std::shared_ptr<ir::Function> function;
  build_model(family_, config_, [&] {
    const program::ModelFile file = program::open_model_file(family_.file, options);
    function = program::trace_prediction(*file.program, *file.entry, store, false);
  });
  parameter_count_ = store.parameter_count();
  if (memories_.empty()) memories_ = memories_of(*function);
  Packing packing{*function, {}, adapter, {}};
  for (size_t i = 0; i < function->inputs.size(); ++i)
    if (function->inputs[i].kind == ir::PortKind::kParameter)
      packing.names[function->body.arguments[i]] = function->inputs[i].name;
  pack(packing, function->body);
  if (adapter) adapter->check_all_used();
  bind(*function);
  if (cache.blocks > 0) use_blocks(*function, cache.blocks);
  weights_.check_all_used();
  return function;
}

std::vector<SequenceMemory> LoadedModel::memories_of(const ir::Function& function) const {
  std::vector<SequenceMemory> out;
  for (const ir::Port& port : function.inputs) {
    if (port.kind != ir::PortKind::kState) continue;
    SequenceMemory& memory = out.emplace_back(SequenceMemory{.state = port.name});
    const auto declared = std::find_if(
        family_.memory.begin(), family_.memory.end(),
        [&](const SequenceMemory& each) { return matches_pattern(each.state, port.name); });
    if (declared == family_.memory.end()) continue;
    memory.kind = declared->kind;
    memory.window = declared->window;
  }
  return out;
}

ir::Value* LoadedModel::constant_of(Packing& packing, const std::string& key, const Array& value) {
  auto [constant, is_new] = packing.constants.try_emplace(key);
  if (is_new) constant->second = packing.function.add_constant(value);
  return constant->second;
}

/// Turns products with matrices into packed ones.
void LoadedModel::pack(Packing& packing, ir::Region& region) {
  for (auto place = region.operations.begin(); place != region.operations.end(); ++place) {
    ir::Operation* const operation = place->get();
    for (const auto& nested : operation->regions) pack(packing, *nested);
    const auto use = matrix_use(*operation);
    if (!use) continue;
    const ir::Value* const matrix = operation->operands[use->weight];
    const auto name = packing.names.find(matrix);
    if (name == packing.names.end() || matrix->type.shape.size() != 2) continue;
    const std::string key = name->second + (use->transposed ? " transposed" : "");
    auto [packed, inserted] = packed_.try_emplace(key);
    if (inserted)
      packed->second =
          weights_.read_packed(name->second, concrete(matrix->type.shape), use->transposed);
    const PackedWeight& weight = packed->second;
    ir::Value* const constant = constant_of(packing, key, weight.rows);
    ir::Value* const other = operation->operands[0];
    if (use->lookup) {
      operation->op = find_op("packed_rows");
      operation->operands = {constant, other};
    } else {
      ir::Value* const bias = operation->operands.size() > 2 ? operation->operands[2] : nullptr;
      operation->op = find_op("packed_linear");
      operation->operands = {other, constant, bias};
    }
    operation->attrs = {};
    operation->attrs.values = {AttrValue(weight.format), AttrValue(weight.features)};
    if (use->lookup) continue;
    operation->attrs.values.push_back(
        AttrValue(int64_t{activations_ == Activations::kInt16 ? 16 : 8}));
    if (!packing.adapter) continue;
    if (const auto* factors =
            packing.adapter->find(name->second, weight.rows.shape[0], weight.features))
      add_adapter(packing, region, place, name->second, *factors);
  }
}

/// Makes the result of a product the sum with the adapter's.
void LoadedModel::add_adapter(Packing& packing, ir::Region& region,
                              std::list<std::unique_ptr<ir::Operation>>::iterator place,
                              const std::string& name, const Adapter::Factors& factors) {
  ir::Operation& product = **place;
  const auto insert = [&](std::vector<ir::Value*> operands, Attrs attrs, const TensorType& type) {
    ir::Operation* const added =
        packing.function.append(region, *product.op, std::move(operands), std::move(attrs), {type});
    added->location = product.location;
    region.operations.splice(place, region.operations, std::prev(region.operations.end()));
    return added->results[0];
  };
  const auto multiply = [&](ir::Value* x, const Array& rows, const char* part) {
    TensorType type = product.results[0]->type;
    type.shape.back() = Dim(rows.shape[0]);
    Attrs attrs;
    attrs.values = {AttrValue(std::string("float")), AttrValue(rows.shape[1]),
                    product.attrs.values[2]};
    return insert({x, constant_of(packing, str(name, " ", part), rows), nullptr}, attrs, type);
  };
  ir::Value* const x = product.operands[0];
  ir::Value* const plain = insert(product.operands, product.attrs, product.results[0]->type);
  ir::Value* const added = multiply(multiply(x, factors.down, "down"), factors.up, "up");
  product.op = find_op("add");
  product.operands = {plain, added};
  product.attrs = {};
}

/// Makes the other parameters constants.
void LoadedModel::bind(ir::Function& function) {
  const auto uses = ir::count_uses(function);
  for (size_t i = function.inputs.size(); i-- > 0;) {
    const ir::Port port = function.inputs[i];
    if (port.kind != ir::PortKind::kParameter) continue;
    const ir::Value* const value = function.body.arguments[i];
    const Dims shape = concrete(value->type.shape);
    if (!uses.contains(value)) {
      function.bind_input(i, Array::reserve(value->type.dtype, shape));
      continue;
    }
    auto [it, inserted] = floats_.try_emplace(port.name);
    if (inserted) it->second = weights_.read(port.name, shape);
    function.bind_input(i, it->second);
  }
}

}  // namespace paddle::llm
