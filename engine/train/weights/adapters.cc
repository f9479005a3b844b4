#include "train/weights/adapters.h"

#include <algorithm>
#include <cmath>

#include "formats/safetensors.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "runtime/execute.h"

namespace paddle::train {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

constexpr const char* kDown = ".lora_a";
constexpr const char* kUp = ".lora_b";

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

bool is_adapted(const Adapters& adapters, const std::string& path, size_t rank) {
  return rank == 2 && matches_any(adapters.only, path);
}

/// matrix + alpha / rank * down up, as the step and the merging compute it.
Tensor sum_of(const Adapters& adapters, const Tensor& matrix, const Tensor& down,
              const Tensor& up) {
  const Tensor product = ops::matmul(down, up) * adapters.scale();
  return matrix + ops::cast(product, matrix.dtype());
}

/// Calls `visit(value, matrix)` for all parameters that are kept as packed rows.
template <class Visit>
void for_each_packed(program::ParameterStore& store, const Adapters& adapters, Visit visit) {
  for (auto& [name, parameter] : store.parameters)
    if (const auto matrix = packed_matrix(adapters, name);
        matrix && parameter.value.shape == matrix->form.shape &&
        parameter.value.dtype == matrix->form.dtype)
      visit(parameter.value, *matrix);
}

}  // namespace

Spec lora_spec() {
  Schema s;
  s.add("rank",
        Spec::integer().at_least(1).at_most(4096).fallback("8").doc(
            "rank of the adapter: columns of the first and rows of the second trained matrix"));
  s.add("alpha", Spec::real().above(0).doc(
                     "the adapter's product is scaled by alpha / rank; default: twice the rank"));
  s.add("only", Spec::list(Spec::text())
                    .or_else(Spec::text())
                    .fallback("['*.weight']")
                    .doc("patterns of the matrices that get an adapter"));
  s.add("also", Spec::list(Spec::text())
                    .or_else(Spec::text())
                    .fallback("[]")
                    .doc("patterns of parameters that are trained as well, such as a new head"));
  s.add("weights_as",
        Spec::word({"float32", "as-is", "int8", "int4"})
            .fallback("float32")
            .doc("type of the frozen base weights: as-is keeps blocks of a GGUF file and 16-bit "
                 "floats, int8 and int4 make blocks"));
  return Spec::map(s).fallback("null").doc(
      "train low-rank adapters (LoRA); base weights are frozen");
}

std::optional<Adapters> read_adapters(const Section& config) {
  if (!config.has("lora")) return std::nullopt;
  const Section s = config.section("lora");
  Adapters out;
  out.rank = s.integer("rank");
  out.alpha = s.has("alpha") ? s.real("alpha") : 2 * static_cast<double>(out.rank);
  out.only = s.texts("only");
  out.also = s.texts("also");
  out.weights_as = convert::find_weight_type(s.text("weights_as"));
  if (out.weights_as && !config.has("init"))
    throw Error(ErrorCode::kConfig,
                "lora.weights_as: there are no initial weights to keep; set init.weights",
                s.location("weights_as"));
  if (config.has("models"))
    throw Error(ErrorCode::kConfig, "lora: is not possible with 'models'", config.location("lora"));
  return out;
}

std::vector<optim::ParameterGroup> adapter_groups(const Adapters& adapters) {
  optim::ParameterGroup frozen, trained;
  frozen.key = trained.key = "lora";
  frozen.match = {"*"};
  frozen.frozen = true;
  trained.match = {str("*", kDown), str("*", kUp)};
  std::vector<optim::ParameterGroup> out = {frozen, trained};
  if (adapters.also.empty()) return out;
  out.push_back(trained);
  out.back().key = "lora.also";
  out.back().match = adapters.also;
  return out;
}

Tensor AdaptedParameters::parameter(const std::string& path, const Dims& shape, DType dtype,
                                    const lang::Initializer& init) {
  const auto packed = packed_matrix(adapters_, path);
  const bool is_packed = packed && packed->shape == shape;
  PackedOperand operand;
  if (is_packed) {
    operand.matrix = *packed;
    operand.rows = outer_.parameter(path, packed->form.shape, packed->form.dtype,
                                    lang::Initializer::constant(0));
    operand.value = unpacked(*packed, operand.rows);
  } else {
    operand.value = outer_.parameter(path, shape, dtype, init);
  }
  if (is_adapted(adapters_, path, shape.size())) {
    // The second matrix starts at zero, so that the model does.
    lang::Initializer first;
    first.kind = lang::Initializer::Kind::kUniform;
    first.b = 1 / std::sqrt(static_cast<double>(shape[0]));
    first.a = -first.b;
    operand.down = outer_.parameter(path + kDown, {shape[0], adapters_.rank}, dtype, first);
    operand.up = outer_.parameter(path + kUp, {adapters_.rank, shape[1]}, dtype,
                                  lang::Initializer::constant(0));
    operand.scale = adapters_.scale();
    operand.value = sum_of(adapters_, operand.value, operand.down, operand.up);
  }
  if (is_packed) packed_.push_back(operand);
  return operand.value;
}

std::optional<PackedMatrix> packed_matrix(const Adapters& adapters, const std::string& name) {
  if (!adapters.base || matches_any(adapters.also, name)) return std::nullopt;
  return adapters.base->find(name);
}

std::vector<std::string> adapted(const program::ParameterStore& store, const Adapters& adapters) {
  std::vector<std::string> out;
  for (const auto& [path, parameter] : store.parameters)
    if (is_adapted(adapters, path, parameter.value.shape.size()) &&
        store.parameters.contains(path + kDown))
      out.push_back(path);
  if (out.empty())
    fail(ErrorCode::kConfig,
         "lora: `only` matches no matrix of the model: ", join(adapters.only, ", "));
  return out;
}

bool is_adapter(const std::string& name) { return name.ends_with(kDown) || name.ends_with(kUp); }
std::string lora_down(const std::string& matrix) { return matrix + kDown; }
std::string lora_up(const std::string& matrix) { return matrix + kUp; }

void unpack_types(program::ParameterStore& store, const Adapters& adapters) {
  for_each_packed(store, adapters, [](Array& value, const PackedMatrix& matrix) {
    value = Array::reserve(DType::kF32, matrix.shape);
  });
}

void merge_adapters(program::ParameterStore& store, const Adapters& adapters) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  for_each_packed(store, adapters, [](Array& value, const PackedMatrix& matrix) {
    value = unpacked(matrix, Tensor(value)).array().contiguous();
  });
  for (const std::string& path : adapted(store, adapters)) {
    program::Parameter& matrix = store.parameters.at(path);
    const auto value = [&](const char* part) {
      return Tensor(store.parameters.at(path + part).value);
    };
    matrix.value = sum_of(adapters, Tensor(matrix.value), value(kDown), value(kUp)).array();
    store.parameters.erase(path + kDown);
    store.parameters.erase(path + kUp);
  }
}

void write_adapters(const std::string& file, const program::ParameterStore& store,
                    const Adapters& adapters) {
  std::vector<std::pair<std::string, Array>> tensors;
  for (const std::string& path : adapted(store, adapters))
    for (const char* part : {kDown, kUp})
      tensors.emplace_back(path + part, store.parameters.at(path + part).value);
  formats::write_safetensors(file, tensors,
                             {{"rank", str(adapters.rank)}, {"alpha", str(adapters.alpha)}});
}

}  // namespace paddle::train
