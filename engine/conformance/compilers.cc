#include "conformance/compilers.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/files.h"
#include "compiler/region_compilers.h"
#include "conformance/modules.h"
#include "conformance/passes.h"
#include "conformance/results.h"
#include "conformance/temporary_folder.h"
#include "inspect/both_modes.h"
#include "inspect/compare.h"
#include "ir/tracer.h"
#include "ops/core/access.h"
#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using Compiler = compiler::RegionCompiler;

std::shared_ptr<ir::Function> traced_as(const TensorFn& function,
                                        const std::vector<TensorType>& types) {
  runtime::register_backends();
  auto out = std::make_shared<ir::Function>("check");
  ir::Tracer tracer(*out);
  const InterpreterScope scope(tracer);
  Tensors inputs;
  for (size_t i = 0; i < types.size(); ++i)
    inputs.push_back(tracer.input({ir::PortKind::kValue, str("x", i)}, types[i]));
  size_t results = 0;
  for (const Tensor& t : function(inputs))
    if (t.defined()) tracer.output({ir::PortKind::kValue, str("y", results++)}, t);
  return out;
}

std::vector<TensorType> types_of_arrays(const std::vector<Array>& inputs) {
  std::vector<TensorType> out;
  for (const Array& x : inputs) out.push_back({x.dtype, to_shape(x.shape)});
  return out;
}

std::vector<Array> copies_of_arrays(const std::vector<Array>& arrays) {
  std::vector<Array> out;
  for (const Array& a : arrays) out.push_back(inspect::own_copy(a.on_host()));
  return out;
}

/// Runs on copies of the inputs, which must stay as they are; kInternal.
std::vector<Array> results_of(runtime::Executable& executable, const std::vector<Array>& inputs) {
  const std::vector<Array> given = copies_of_arrays(inputs);
  std::vector<Array> out = copies_of_arrays(executable.run(given));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inspect::difference(given[i], inputs[i], {0, 0}).empty())
      fail(ErrorCode::kInternal, "input ", i, " is overwritten");
  return out;
}

/// A function that is compiled with the compiler, or without any.
class Compiled {
 public:
  Compiled(const TensorFn& function, const std::vector<TensorType>& types, const Compiler* compiler)
      : function_(traced_as(function, types)) {
    compiler::CompileOptions options;
    options.compiler = compiler ? compiler->name : "";
    if (compiler) options.target.device.kind = compiler->device_kind;
    runtime::ExecutableOptions checked;
    checked.plan.check_memory = true;
    executable_ = runtime::compile(function_, options, checked);
  }
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    return results_of(*executable_, inputs);
  }
  /// Regions of the function that the compiler has taken.
  size_t claimed() const {
    size_t out = 0;
    ir::for_each_operation(function_->body,
                           [&](const ir::Operation& o) { out += compiler::is_claimed(o); });
    return out;
  }

 private:
  std::shared_ptr<ir::Function> function_;
  std::unique_ptr<runtime::Executable> executable_;
};

std::string compare(const std::vector<Array>& found, const std::vector<Array>& expected,
                    bool bits) {
  return compare_results(found, expected, bits, "the compiler", 2e-2);
}

/// Compares one function; `claimed` counts the regions that the compiler has taken.
std::string compare_function(const Compiler& compiler, const TensorFn& function,
                             const std::vector<Array>& inputs, size_t& claimed) {
  const std::vector<TensorType> types = types_of_arrays(inputs);
  const Compiled with(function, types, &compiler);
  claimed += with.claimed();
  return compare(with.run(inputs), Compiled(function, types, nullptr).run(inputs),
                 compiler.keeps_bits);
}

std::string nothing_claimed(const std::string& of) {
  return str(kSkip, "it takes no region of ", of);
}

std::string check_examples(const Compiler& compiler, const std::vector<Example>& examples,
                           bool repeat) {
  size_t claimed = 0;
  for (size_t i = 0; i < examples.size(); ++i) try {
      std::string bad;
      if (repeat) {
        const Compiled one(examples[i].function, types_of_arrays(examples[i].inputs), &compiler),
            other(examples[i].function, types_of_arrays(examples[i].inputs), &compiler);
        claimed += one.claimed();
        const std::vector<Array> first = one.run(examples[i].inputs);
        bad = compare(one.run(examples[i].inputs), first, true);
        if (bad.empty()) bad = compare(other.run(examples[i].inputs), first, true);
        if (!bad.empty()) bad = "once more: " + bad.substr(0, bad.find(", though"));
      } else {
        bad = compare_function(compiler, examples[i].function, examples[i].inputs, claimed);
      }
      if (!bad.empty()) return str("module ", i, ": ", bad);
    } catch (const Error& e) {
      return str("module ", i, ": ", first_line(e.what()));
    }
  return claimed > 0 ? "" : nothing_claimed(str("the ", examples.size(), " modules"));
}

std::vector<Array> run_as_is(const std::shared_ptr<ir::Function>& function,
                             const std::vector<Array>& inputs) {
  runtime::ExecutableOptions options;
  options.plan.target = resolved(function->target);
  options.plan.check_memory = true;
  runtime::Executable executable(function, options);
  return results_of(executable, inputs);
}

/// One call: what the compiler makes of it, against the kernel of the engine. nullopt if the
/// arguments do not fit the operation, or the compiler does not take it.
std::optional<std::string> check_call(const Compiler& compiler, const Op& op, const Call& text) {
  std::vector<Array> inputs;
  std::shared_ptr<ir::Function> function, claimed;
  try {
    const inspect::NamedCall call = parse(op, text);
    for (const Array& x : call.inputs()) inputs.push_back(with_values(x, text.values));
    function = traced_as(call, types_of_arrays(inputs));
    claimed = traced_as(call, types_of_arrays(inputs));
  } catch (const Error&) {
    return std::nullopt;
  }
  claimed->target.device.kind = compiler.device_kind;
  Compiler of_one = compiler;
  of_one.least_operations = 1;
  try {
    compiler::claim_regions(*claimed, of_one);
    size_t regions = 0;
    ir::for_each_operation(claimed->body,
                           [&](const ir::Operation& o) { regions += compiler::is_claimed(o); });
    if (regions == 0) return std::nullopt;
    ir::verify(*claimed);
  } catch (const Error& e) {
    return first_line(e.what());
  }
  std::vector<Array> expected;
  try {
    expected = run_as_is(function, inputs);
  } catch (const Error&) {
    return std::nullopt;
  }
  try {
    return compare(run_as_is(claimed, inputs), expected, compiler.keeps_bits);
  } catch (const Error& e) {
    return first_line(e.what());
  }
}

/// Calls of all operations that the compiler supports, on their samples.
std::string check_operations(const Compiler& compiler, const Extent& extent) {
  constexpr size_t kQuickCalls = 6, kCalls = 40;
  constexpr size_t kQuickTries = 12;  // of an operation that is not claimed
  constexpr uint32_t kNever =
      kControlFlow | kEffect | kRandom | kRunTimeShape | kOptimizerUpdate | kAllAccesses;
  size_t claimed = 0;
  for (const Op* op : all_ops()) {
    if (op->def->traits & kNever) continue;
    size_t of_operation = 0, tries = 0;
    for (const Call& text : calls_of(*op, extent)) {
      if (of_operation == (extent.quick ? kQuickCalls : kCalls)) break;
      if (extent.quick && of_operation == 0 && tries++ == kQuickTries) break;
      const std::optional<std::string> bad = check_call(compiler, *op, text);
      if (!bad) continue;
      if (!bad->empty()) return str(op->name(), ": ", *bad, " [", text.text, "]");
      ++of_operation;
    }
    claimed += of_operation;
  }
  return claimed > 0 ? "" : nothing_claimed("single operations");
}

Tensor call_of(const char* name, const Tensors& operands) {
  const Op& op = get_op(name);
  return call_single(op, operands, default_attrs(op));
}
Tensor scalar(float value) { return Tensor(Array::from<float>({value}, {})); }

Array rows_of(int64_t rows, uint64_t seed) {
  Array out = Array::empty(DType::kF32, {rows, 8});
  const Random random(seed);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return out;
}

/// Functions of x [n, 8] and y [n, 8] for all n.
std::vector<TensorFn> functions_of_any_size() {
  return {
      [](const Tensors& x) {
        const Tensor h = call_of("tanh", {call_of("multiply", {x[0], scalar(0.5)})});
        return Tensors{call_of("add", {call_of("abs", {h}), x[1]}), call_of("subtract", {h, x[1]})};
      },
      [](const Tensors& x) {
        return Tensors{call_of("relu", {call_of("matmul", {x[0], Tensor(rows_of(8, 3))})})};
      },
      [](const Tensors& x) {
        const Tensor h = call_of("softmax", {call_of("add", {x[0], x[1]})});
        return Tensors{call_of("multiply", {h, x[0]}), call_of("sum", {h})};
      },
      [](const Tensors& x) {
        const Tensor h = call_of("exp", {call_of("multiply", {x[0], scalar(-1)})});
        return Tensors{call_of("divide", {h, call_of("add", {h, scalar(1)})})};
      },
  };
}

std::vector<TensorType> any_size() {
  const TensorType type{DType::kF32, {Dim::symbol("n"), 8}};
  return {type, type};
}

std::string check_sizes(const Compiler& compiler, const Extent& extent) {
  size_t claimed = 0;
  for (size_t i = 0; i < functions_of_any_size().size(); ++i) {
    const TensorFn function = functions_of_any_size()[i];
    const Compiled with(function, any_size(), &compiler), without(function, any_size(), nullptr);
    claimed += with.claimed();
    for (const int64_t rows : {5, 1, 0, 1000, 5}) try {
        const std::vector<Array> inputs = {rows_of(rows, extent.seed), rows_of(rows, ~extent.seed)};
        const std::string bad = compare(with.run(inputs), without.run(inputs), compiler.keeps_bits);
        if (!bad.empty()) return str("function ", i, " of ", rows, " rows: ", bad);
      } catch (const Error& e) {
        return str("function ", i, " of ", rows, " rows: ", first_line(e.what()));
      }
  }
  return claimed > 0 ? "" : nothing_claimed("functions whose sizes are not known");
}

/// Plans of one region in several threads, each with its own values.
std::string check_threads(const Compiler& compiler, const Extent& extent) {
  constexpr size_t kThreads = 4;
  const int runs = extent.quick ? 20 : 200;
  size_t claimed = 0;
  for (size_t i = 0; i < functions_of_any_size().size(); ++i) {
    const TensorFn function = functions_of_any_size()[i];
    const std::vector<Array> sizes = {rows_of(64, 1), rows_of(64, 2)};
    const Compiled without(function, types_of_arrays(sizes), nullptr);
    std::vector<std::vector<Array>> inputs, expected;
    for (uint64_t t = 0; t < kThreads; ++t) {
      inputs.push_back({rows_of(64, extent.seed + t), rows_of(64, extent.seed + 100 + t)});
      expected.push_back(without.run(inputs.back()));
    }
    // Executables of one function share what the compiler has made.
    const auto shared = traced_as(function, types_of_arrays(sizes));
    compiler::CompileOptions options;
    options.compiler = compiler.name;
    options.target.device.kind = compiler.device_kind;
    runtime::optimize(*shared, options);
    ir::for_each_operation(shared->body,
                           [&](const ir::Operation& o) { claimed += compiler::is_claimed(o); });
    std::vector<std::string> wrong(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        try {
          runtime::ExecutableOptions own;
          own.plan.target = resolved(options.target);
          runtime::Executable executable(shared, own);
          for (int run = 0; run < runs && wrong[t].empty(); ++run) {
            wrong[t] = compare(results_of(executable, inputs[t]), expected[t], compiler.keeps_bits);
          }
        } catch (const Error& e) {
          wrong[t] = first_line(e.what());
        }
      });
    for (std::thread& each : threads) each.join();
    for (const std::string& bad : wrong)
      if (!bad.empty()) return str("function ", i, " in ", kThreads, " threads: ", bad);
  }
  return claimed > 0 ? "" : nothing_claimed("the functions");
}

/// The environment variable PADDLE_CACHE_DIR with another value.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& folder) {
    if (const char* const before = std::getenv(kName)) before_ = before;
    ::setenv(kName, folder.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_)
      ::setenv(kName, before_->c_str(), 1);
    else
      ::unsetenv(kName);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  static constexpr const char* kName = "PADDLE_CACHE_DIR";
  std::optional<std::string> before_;
};

/// Regions that were compiled, against the same from their forms in files.
std::string check_forms(const Compiler& compiler, const std::vector<Example>& examples) {
  const TemporaryFolder folder;
  const CacheFolder scope(folder.path());
  size_t claimed = 0;
  for (size_t i = 0; i < examples.size(); ++i) try {
      const auto types = types_of_arrays(examples[i].inputs);
      const Compiled first(examples[i].function, types, &compiler),
          second(examples[i].function, types, &compiler);
      claimed += first.claimed();
      if (first.claimed() != second.claimed())
        return str("module ", i, ": ", second.claimed(), " regions are taken from forms, ",
                   first.claimed(), " are compiled");
      const std::string bad =
          compare(second.run(examples[i].inputs), first.run(examples[i].inputs), true);
      if (!bad.empty()) return str("module ", i, ": from its form: ", bad);
    } catch (const Error& e) {
      return str("module ", i, ": ", first_line(e.what()));
    }
  if (claimed == 0) return nothing_claimed(str("the ", examples.size(), " modules"));
  return is_directory(folder.path() + "/regions")
             ? ""
             : str(kSkip, "its regions have no form for files");
}

}  // namespace

const std::vector<std::string>& compiler_checks() {
  static const std::vector<std::string> all = {"modules", "gradients", "unusual", "operations",
                                               "sizes",   "threads",   "repeat",  "forms"};
  return all;
}

std::string check_compiler(const std::string& name, const std::string& check,
                           const Extent& extent) {
  runtime::register_backends();
  const auto compiler = compiler::region_compilers().find(name);
  ensure(compiler != nullptr, name, ": not registered");
  const size_t share = extent.quick ? 4 : 1;
  if (check == "operations") return check_operations(*compiler, extent);
  if (check == "sizes") return check_sizes(*compiler, extent);
  if (check == "threads") return check_threads(*compiler, extent);
  if (check == "gradients")
    return check_examples(*compiler, chain_gradients(40 / share, extent.seed), false);
  if (check == "forms") return check_forms(*compiler, chains(40 / share, extent.seed));
  if (check == "unusual") return check_examples(*compiler, unusual_functions(), false);
  return check_examples(*compiler, chains(70 / share, extent.seed), check == "repeat");
}

}  // namespace paddle::conformance
