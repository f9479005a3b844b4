#pragma once
// Runs models of the language on types only, for the tests of tests/lang.

#include <gtest/gtest.h>

#include "lang/eval/evaluator.h"
#include "lang/eval/shape_interpreter.h"
#include "ops/core/call.h"

namespace paddle::lang::testing_support {

class MapStore final : public ParameterProvider {
 public:
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const Initializer& init) override {
    return slot(path, shape, dtype, "", init);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype, const Initializer& init,
               StateScope scope) override {
    return slot(path, shape, dtype, scope == StateScope::kModel ? "state " : "sequence ", init);
  }
  Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                    const Initializer& init, const Tensor&) override {
    slot(path, {width}, dtype, "table ", init);
    Shape shape = keys.shape();
    shape.push_back(width);
    return abstract_tensor({dtype, shape});
  }
  void update(const std::string& path, const Tensor&) override { updated += path + " "; }
  int64_t static_value(const Dim&) override { return 7; }

  std::string text() const {
    std::string out;
    for (const auto& [path, type] : types) out += path + " " + kinds.at(path) + type.text() + "\n";
    return out;
  }
  std::map<std::string, TensorType> types;
  std::map<std::string, std::string> kinds, inits;
  std::string updated;

 private:
  Tensor slot(const std::string& path, const Dims& shape, DType dtype, const std::string& kind,
              const Initializer& init) {
    TensorType type;
    type.dtype = dtype;
    type.shape = to_shape(shape);
    const auto [entry, fresh] = types.emplace(path, type);
    if (!fresh && !same_type(entry->second, type)) {
      fail(ErrorCode::kModel, "'", path, "' is ", entry->second, ", here it is ", type);
    }
    kinds[path] = kind;
    inits[path] = init.text();
    return abstract_tensor(type);
  }
};

struct Result {
  MapStore store;
  std::vector<NamedTensor> outputs;
  std::string error;
  std::string types() const {
    std::string out;
    for (const NamedTensor& o : outputs) out += o.name + " " + o.tensor.type().text() + "\n";
    return out;
  }
};

inline Result run_text(const std::string& text, bool training = false,
                       const std::string& file = "m.yaml",
                       const ProgramOptions& program_options = {}) {
  Result run;
  try {
    const auto program = read_program(config::parse_document(text, file), program_options);
    ShapeInterpreter interpreter;
    const InterpreterScope scope(interpreter);
    const RandomScope random(Tensor(Array::zeros(DType::kU64, {2})));
    EvaluationOptions options;
    options.training = training;
    options.store = &run.store;
    check_program(*program, options);
    Tensors inputs;
    for (const auto& [name, type] : input_types(*program, program->model)) {
      inputs.push_back(abstract_tensor(type));
    }
    run.outputs = run_entry(*program, program->model, inputs, options);
  } catch (const Error& error) {
    run.error = error.what();
    EXPECT_TRUE(error.code() == ErrorCode::kConfig || error.code() == ErrorCode::kUsage)
        << error.what();
  }
  return run;
}

/// A model with input x: float32[n, 4] and some params around a body.
inline Result run_body(const std::string& body, bool training = false) {
  std::string text =
      "inputs: {x: 'float32[n, 4]', k: 'int64[]'}\nparams: {width: 8, sizes: [3, 5], cfg: {depth: "
      "2, act: relu}}\nmodel: |\n";
  for (const std::string& line : split(body, '\n')) text += "  " + line + "\n";
  return run_text(text, training);
}

}  // namespace paddle::lang::testing_support
