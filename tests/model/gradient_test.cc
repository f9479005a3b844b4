// Gradients through control flow of the model language: compiled against the eager tape, and
// against differences.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "lang/eval/evaluator.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

constexpr DType kType = DType::kF64;

/// Parameters that are handed in.
class GivenStore final : public lang::ParameterProvider {
 public:
  explicit GivenStore(std::map<std::string, Tensor>& values) : values_(values) {}
  Tensor parameter(const std::string& path, const Dims&, DType, const lang::Initializer&) override {
    return values_.at(path);
  }
  Tensor state(const std::string& path, const Dims&, DType, const lang::Initializer&,
               lang::StateScope) override {
    return values_.at(path);
  }
  void update(const std::string&, const Tensor&) override {}
  DType stored_dtype(DType) const override { return kType; }

 private:
  std::map<std::string, Tensor>& values_;
};

/// Loss and gradients of x and of the parameter w for a body over x: [3] and k: int64[].
struct Case {
  std::shared_ptr<const lang::Program> program;
  Array x, w;

  explicit Case(const std::string& body)
      : x(Array::from<double>({0.3, -0.8, 1.1}, {3})),
        w(Array::from<double>({0.9, -0.4, 0.7}, {3})) {
    std::string text = "inputs: {x: 'float64[3]', k: 'int64[]'}\nmodel: |\n";
    text += "  w = param('w', [3], dtype='float64')\n";
    for (const std::string& line : split(body, '\n')) text += "  " + line + "\n";
    program = lang::read_program(config::parse_document(text, "m.yaml"));
  }

  Tensors compute(const Tensor& x_tensor, const Tensor& w_tensor, const Tensor& k) const {
    std::map<std::string, Tensor> values = {{"w", w_tensor}};
    GivenStore store(values);
    lang::EvaluationOptions options;
    options.training = true;
    options.store = &store;
    const Tensor loss = lang::run_entry(*program, program->model, {x_tensor, k}, options)[0].tensor;
    Tensors out = autograd::grad({loss}, {x_tensor, w_tensor});
    out.insert(out.begin(), loss);
    return out;
  }

  std::vector<Array> eager(int64_t k, const Array& x_value, const Array& w_value) const {
    runtime::register_backends();
    runtime::EagerExecutor executor;
    const InterpreterScope scope(executor);
    autograd::Tape tape;
    const InterpreterScope recording(tape);
    std::vector<Array> out;
    for (const Tensor& t : compute(autograd::variable(Tensor(x_value)),
                                   autograd::variable(Tensor(w_value)), Tensor(Array::scalar(k))))
      out.push_back(t.defined() ? t.array().contiguous() : Array::zeros(kType, {3}));
    return out;
  }

  std::vector<Array> compiled(int64_t k) const {
    runtime::register_backends();
    auto function = std::make_shared<ir::Function>("gradients");
    {
      ir::Tracer tracer(*function);
      const InterpreterScope scope(tracer);
      const Tensor x_tensor = tracer.input({ir::PortKind::kValue, "x"}, {kType, {Dim(3)}});
      const Tensor w_tensor = tracer.input({ir::PortKind::kValue, "w"}, {kType, {Dim(3)}});
      const Tensor turns = tracer.input({ir::PortKind::kValue, "k"}, {DType::kI64, {}});
      int i = 0;
      for (const Tensor& t : compute(x_tensor, w_tensor, turns))
        tracer.output({ir::PortKind::kValue, "out" + std::to_string(i++)},
                      t.defined() ? t : zeros_like(x_tensor));
    }
    ir::verify(*function);
    runtime::optimize(*function);
    runtime::Executable executable(function, {8, {true, nullptr}});
    // Results lie in the executable's memory.
    std::vector<Array> out;
    for (const Array& result : executable.run({x, w, Array::scalar(k)})) {
      out.push_back(Array::empty(kType, result.shape));
      for (int64_t i = 0; i < result.size(); ++i) out.back().data<double>()[i] = result.number(i);
    }
    return out;
  }

  void check(const std::vector<int64_t>& turns) const {
    for (const int64_t k : turns) {
      SCOPED_TRACE(k);
      const auto a = eager(k, x, w), b = compiled(k);
      for (size_t o = 0; o < 3; ++o)
        for (int64_t i = 0; i < a[o].size(); ++i)
          EXPECT_NEAR(a[o].number(i), b[o].number(i), 1e-12 * (1 + std::abs(a[o].number(i))))
              << "output " << o << ", element " << i;
      constexpr double kStep = 1e-6;
      for (size_t o = 1; o < 3; ++o)
        for (int64_t i = 0; i < 3; ++i) {
          const auto loss = [&](double shift) {
            Array moved = (o == 1 ? x : w).cast(kType);
            Array copy = Array::empty(kType, {3});
            for (int64_t e = 0; e < 3; ++e)
              copy.data<double>()[e] = moved.number(e) + (e == i ? shift : 0);
            return eager(k, o == 1 ? copy : x, o == 1 ? w : copy)[0].number();
          };
          EXPECT_NEAR((loss(kStep) - loss(-kStep)) / (2 * kStep), b[o].number(i), 1e-6)
              << "output " << o << ", element " << i;
        }
    }
  }
};

TEST(FlowGradient, WhileWithoutABound) {
  Case(R"(i = 0
while i < k:
  x = tanh(x * w) + 0.1 * x
  i += 1
return sum(x * x))")
      .check({0, 1, 5, 63, 64, 65, 130});
}

TEST(FlowGradient, WhileThatNobodyDifferentiatesThrough) {
  Case("i = 0\nwhile i < k:\n  i += 1\nreturn sum(x * w) * i").check({0, 3});
}

TEST(FlowGradient, BreakContinueAndReturn) {
  Case(R"(i = 0
s = x * 0
while true:
  i += 1
  if i > k: break
  if i == 2: continue
  x = sin(x + w)
  s = s + x * i
  if sum(s) > 8:
    return sum(s * w) * 3
return sum(s) + sum(x * w))")
      .check({0, 1, 2, 3, 6, 80});
}

TEST(FlowGradient, BreakInALoopOnNumbers) {
  Case(R"(s = x * w
for j in range(4):
  if k < j: break
  if k == j: continue
  s = s * x + w
return sum(s))")
      .check({-1, 0, 2, 9});
}

TEST(FlowGradient, LoopsInLoopsAndBranches) {
  Case(R"(i = 0
while i < k:
  j = 0
  while j < i:
    x = x + 0.1 * sin(x * w)
    j += 1
  if i == 2:
    x = x * w
  else:
    x = cos(x)
  i += 1
return sum(x * w))")
      .check({0, 1, 3, 5});
}

TEST(FlowGradient, ReadsAndWritesByTensors) {
  Case(R"(y = x * w
z = y * 1
z[k] = z[k] * y[k - 1] + 1
z[[0, 2]] += y[[1, 0]]
u = z[y > 0]
return sum(z * w) + sum(u * u) + sum(z[:k] * 2) + sum(z[k:]))")
      .check({1, 2});
}

}  // namespace
}  // namespace paddle
