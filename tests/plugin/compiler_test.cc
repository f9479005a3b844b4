// Compilers of graphs: which regions they get, and how the engine computes those that they decline
// or fail to compile.

#include "plugin/compiler_adapter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "ir/module.h"
#include "plugin/host.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

/// The answers of the compiler of a test; static, since compilers are C functions.
struct Behavior {
  std::set<std::string> operations;
  std::function<paddle_status(paddle_call*, const paddle_region&, paddle_instance*)> compile;
  uint32_t flags = PADDLE_COMPILER_TRAINING;
  uint32_t least_operations = 0;
};
Behavior behavior;

paddle_status supports(paddle_call*, const char* operation, const paddle_request*) {
  return behavior.operations.count(operation) ? paddle_status{PADDLE_OK}
                                              : paddle_status{PADDLE_DECLINED};
}
paddle_status compile(paddle_call* call, const paddle_region* region, paddle_instance* instance) {
  return behavior.compile(call, *region, instance);
}

/// The compiler "test.loops" of this behavior, while it lives.
class Registered {
 public:
  explicit Registered(Behavior given) {
    behavior = std::move(given);
    paddle_compiler& functions = context_.functions;
    functions.struct_size = sizeof functions;
    functions.flags = behavior.flags;
    functions.name = "loops";
    functions.device = "cpu";
    functions.supports = supports;
    functions.compile = compile;
    functions.least_operations = behavior.least_operations;
    compiler::region_compilers().add({region_compiler_of(context_)}, {"test"});
  }
  ~Registered() { compiler::region_compilers().remove({"test.loops"}); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  CompilerContext context_{"test 1.0.0", "test.loops", {}};
};

/// Writes 7 to all results.
paddle_status make_sevens(paddle_call*, const paddle_region& region, paddle_instance* instance) {
  struct Sizes {
    std::vector<size_t> of_results;
  };
  auto* const sizes = new Sizes;
  for (uint32_t r = 0; r < region.result_count; ++r) {
    const paddle_view& view = *region.values[region.results[r]];
    size_t count = 1;
    for (int32_t d = 0; d < view.rank; ++d) count *= static_cast<size_t>(view.shape[d]);
    sizes->of_results.push_back(count);
  }
  instance->state = sizes;
  instance->destroy = [](void* state) { delete static_cast<Sizes*>(state); };
  instance->run = [](const void* state, const paddle_run* run) -> paddle_status {
    const auto& known = static_cast<const Sizes*>(state)->of_results;
    for (uint32_t r = 0; r < run->result_count; ++r)
      std::fill_n(static_cast<float*>(run->results[r]), known[r], 7.0f);
    return PADDLE_OK;
  };
  return PADDLE_OK;
}

std::shared_ptr<ir::Function> function_of(const std::string& inputs, const std::string& body) {
  runtime::register_backends();
  return ir::parse("module 'm' {\n  func 'f'(" + inputs + ") {\n" + body + "  }\n}\n", "test.txt")
      .functions[0];
}

size_t claimed_in(const ir::Function& function) {
  size_t out = 0;
  ir::for_each_operation(function.body,
                         [&](const ir::Operation& o) { out += compiler::is_claimed(o); });
  return out;
}

const char* const kX = "%0 : float32[4] 'x'";

void claim(ir::Function& function) {
  compiler::claim_regions(function, *compiler::region_compilers().find("test.loops"));
  ir::verify(function);
}

TEST(PluginCompiler, GetsConnectedOperationsAsOneRegion) {
  std::string text;
  uint32_t nodes = 0;
  const Registered registered(
      {{"exp", "add"}, [&](paddle_call* call, const paddle_region& region, paddle_instance* made) {
         text = region.text;
         nodes = region.node_count;
         EXPECT_EQ(region.operand_count, 2u);
         EXPECT_EQ(region.value_count, 4u);
         EXPECT_STREQ(region.nodes[0]->operation, "exp");
         EXPECT_EQ(region.nodes[0]->operands[0], 0);
         EXPECT_EQ(region.nodes[1]->operands[1], 1);
         EXPECT_EQ(region.nodes[1]->results[0], region.results[0]);
         EXPECT_STREQ(region.nodes[0]->location, "model.yaml:3:4");
         const paddle_view& constant = *region.values[1];
         EXPECT_EQ(constant.flags & PADDLE_VIEW_CONSTANT, uint32_t{PADDLE_VIEW_CONSTANT});
         EXPECT_EQ(static_cast<const float*>(constant.data)[0], 2.5f);
         return make_sevens(call, region, made);
       }});
  const auto f = function_of(kX,
                             "    %9 = constant float32[] [2.5]\n"
                             "    %1 = exp(%0) : float32[4]  // model.yaml:3:4\n"
                             "    %2 = add(%1, %9) : float32[4]\n"
                             "    %3 = sin(%2) : float32[4]\n"
                             "    return %2 'y', %3 'z'\n");
  claim(*f);
  EXPECT_EQ(claimed_in(*f), 1u);
  EXPECT_EQ(nodes, 2u);
  EXPECT_NE(text.find("= add(%2, %1) : float32[4]"), std::string::npos) << text;
  EXPECT_NO_THROW(ir::parse(text, "region.txt"));
  EXPECT_NO_THROW(ir::parse("module 'm' {\n" + ir::print(*f) + "}\n", "again.txt"));
  runtime::Executable executable(f);
  const auto& results = executable.run({Array::zeros(DType::kF32, {4})});
  EXPECT_EQ(results[0].number(3), 7);
  EXPECT_FLOAT_EQ(static_cast<float>(results[1].number(3)), std::sin(7.0f));
}

TEST(PluginCompiler, TheOneOfTheLowestCostGetsAnOperation) {
  const Registered registered({{"exp", "add"}, make_sevens});
  const auto base = compiler::region_compilers().find("test.loops");
  const auto with_cost = [&](double of_exp, double of_add) {
    auto out = std::make_shared<compiler::RegionCompiler>(*base);
    out->cost = [=](const ir::Operation& o) { return o.op->name() == "exp" ? of_exp : of_add; };
    return out;
  };
  const compiler::RegionCompilers all = {with_cost(1, 3), with_cost(2, 2)};
  const auto claimed_by = [&](size_t which) {
    const auto f = function_of(kX,
                               "    %1 = exp(%0) : float32[4]\n"
                               "    %2 = add(%1, %0) : float32[4]\n"
                               "    return %2 'y'\n");
    compiler::claim_regions(*f, *all[which], all);
    std::string out;
    for (const auto& o : f->body.operations)
      if (compiler::is_claimed(*o))
        for (const auto& each : o->regions[0]->operations) out += str(each->op->name(), " ");
    return out;
  };
  EXPECT_EQ(claimed_by(0), "exp ");
  EXPECT_EQ(claimed_by(1), "add ");
}

/// A compiler whose forms say how often it has compiled; static, since these are C functions.
int compiled_count = 0, restored_count = 0;
std::string form;

TEST(PluginCompiler, KeepsFormsOfRegionsInFiles) {
  const std::string folder = testing::TempDir() + "paddle_forms";
  std::filesystem::remove_all(folder);
  ::setenv("PADDLE_CACHE_DIR", folder.c_str(), 1);
  behavior = {{"exp"}, [](paddle_call* call, const paddle_region& region, paddle_instance* made) {
                ++compiled_count;
                return make_sevens(call, region, made);
              }};
  CompilerContext context{"test 1.0.0", "test.forms", {}};
  context.functions.struct_size = sizeof context.functions;
  context.functions.name = "forms";
  context.functions.supports = supports;
  context.functions.compile = compile;
  context.functions.serialize = [](paddle_call*, const void*, paddle_write write,
                                   void* to) -> paddle_status {
    const paddle_status first = write(to, "sev", 3);
    return first == PADDLE_OK ? write(to, "ens", 3) : first;
  };
  context.functions.deserialize = [](paddle_call* call, const paddle_region* region,
                                     const void* bytes, size_t size,
                                     paddle_instance* instance) -> paddle_status {
    form.assign(static_cast<const char*>(bytes), size);
    ++restored_count;
    return make_sevens(call, *region, instance);
  };
  compiler::region_compilers().add({region_compiler_of(context)}, {"test"});
  const auto run = [](const char* shape) {
    const auto f =
        function_of(str("%0 : float32[", shape, "] 'x'"),
                    str("    %1 = exp(%0) : float32[", shape, "]\n", "    return %1 'y'\n"));
    compiler::claim_regions(*f, *compiler::region_compilers().find("test.forms"));
    EXPECT_EQ(claimed_in(*f), 1u);
    runtime::Executable executable(f);
    return executable.run({Array::zeros(DType::kF32, {std::stoi(shape)})})[0].number(0);
  };
  EXPECT_EQ(run("4"), 7);
  EXPECT_EQ(compiled_count, 1);
  EXPECT_EQ(run("4"), 7);
  EXPECT_EQ(compiled_count, 1);
  EXPECT_EQ(restored_count, 1);
  EXPECT_EQ(form, "sevens");
  EXPECT_EQ(run("5"), 7);  // another region
  EXPECT_EQ(compiled_count, 2);
  context.sha256 = "of another file";
  EXPECT_EQ(run("4"), 7);
  EXPECT_EQ(compiled_count, 3);
  // A form that the compiler no longer takes is compiled again.
  context.functions.deserialize = [](paddle_call*, const paddle_region*, const void*, size_t,
                                     paddle_instance*) -> paddle_status { return PADDLE_DECLINED; };
  EXPECT_EQ(run("4"), 7);
  EXPECT_EQ(compiled_count, 4);
  compiler::region_compilers().remove({"test.forms"});
  ::unsetenv("PADDLE_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

TEST(PluginCompiler, RegionsNeverDependOnThemselves) {
  const Registered registered({{"exp", "add"}, make_sevens});
  // The sum needs the first exponential directly, and by an operation of the engine.
  const auto f = function_of(kX,
                             "    %1 = exp(%0) : float32[4]\n"
                             "    %2 = sin(%1) : float32[4]\n"
                             "    %3 = add(%1, %2) : float32[4]\n"
                             "    return %3 'y'\n");
  claim(*f);
  EXPECT_EQ(claimed_in(*f), 2u);
  EXPECT_EQ(f->body.operations.size(), 3u);
}

TEST(PluginCompiler, OperationsOfSeveralResultsKeepThem) {
  const Registered registered({{"topk", "abs"}, make_sevens});
  const auto f = function_of(kX,
                             "    %1 = abs(%0) : float32[4]\n"
                             "    %2, %3 = topk(%1) {k = 2} : float32[2], int64[2]\n"
                             "    return %2 'y', %3 'z'\n");
  const std::string before = ir::print(*f);
  claim(*f);
  ASSERT_EQ(claimed_in(*f), 1u);
  EXPECT_EQ(f->body.operations.front()->results.size(), 2u);
  EXPECT_EQ(f->body.operations.front()->results[1]->index, 1u);
}

TEST(PluginCompiler, DeclinedRegionsStayAsTheyAre) {
  for (const paddle_status status : {paddle_status{PADDLE_DECLINED}, paddle_status{PADDLE_DATA}}) {
    const Registered registered(
        {{"exp", "add", "topk"},
         [&](paddle_call* call, const paddle_region&, paddle_instance*) -> paddle_status {
           return status == PADDLE_DECLINED ? status : host().fail(call, status, "not today");
         }});
    const auto f = function_of(kX,
                               "    %1 = exp(%0) : float32[4]\n"
                               "    %2 = add(%1, %0) : float32[4]\n"
                               "    %3, %4 = topk(%2) {k = 2} : float32[2], int64[2]\n"
                               "    return %2 'y', %3 'z', %4 'i'\n");
    const std::string before = ir::print(*f);
    testing::internal::CaptureStderr();
    claim(*f);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(ir::print(*f), before);
    EXPECT_EQ(said.find("not today") != std::string::npos, status == PADDLE_DATA) << said;
  }
}

TEST(PluginCompiler, SizesOfACallAreCompiledWhenItIsPlanned) {
  std::vector<int64_t> sizes;
  bool declines = false;
  const Registered registered(
      {{"exp"}, [&](paddle_call* call, const paddle_region& region, paddle_instance* made) {
         sizes.push_back(region.values[0]->shape[0]);
         return declines ? paddle_status{PADDLE_DECLINED} : make_sevens(call, region, made);
       }});
  const auto f =
      function_of("%0 : float32[n] 'x'", "    %1 = exp(%0) : float32[n]\n    return %1 'y'\n");
  claim(*f);
  EXPECT_TRUE(sizes.empty());
  runtime::Executable executable(f);
  EXPECT_EQ(executable.run({Array::zeros(DType::kF32, {3})})[0].number(2), 7);
  declines = true;
  EXPECT_EQ(executable.run({Array::zeros(DType::kF32, {5})})[0].number(4), 1)
      << "by the engine's kernel";
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 5}));
}

TEST(PluginCompiler, BodiesOfControlFlowAreClaimed) {
  const Registered registered({{"exp", "sin"}, make_sevens});
  const auto f = function_of(std::string(kX) + ", %5 : bool[] 'c'",
                             "    %1 = cf.if(%5) : float32[4] () {\n"
                             "      %2 = exp(%0) : float32[4]\n"
                             "      yield %2\n    } () {\n"
                             "      %3 = cos(%0) : float32[4]\n"
                             "      yield %3\n    }\n"
                             "    return %1 'y'\n");
  claim(*f);
  EXPECT_EQ(claimed_in(*f), 1u);
  runtime::Executable executable(f);
  const Array zeros = Array::zeros(DType::kF32, {4});
  EXPECT_EQ(executable.run({zeros, Array::from<bool>({true}, {})})[0].number(0), 7);
  EXPECT_EQ(executable.run({zeros, Array::from<bool>({false}, {})})[0].number(0), 1);
}

TEST(PluginCompiler, RunsOnlyWhereItMay) {
  const auto claims = [](const Behavior& given, const compiler::CompileOptions& options) {
    const Registered registered(given);
    const auto f = function_of("%0 : float32[4] parameter 'x'",
                               "    %1 = exp(%0) : float32[4]\n    %2 = sin(%1) : float32[4]\n"
                               "    return %2 parameter 'x', %1 'y'\n");
    runtime::optimize(*f, options);
    return claimed_in(*f);
  };
  const Behavior all{{"exp", "sin"}, make_sevens};
  EXPECT_EQ(claims(all, {}), 1u);
  EXPECT_EQ(claims(all, {.compiler = "test.loops"}), 1u);
  EXPECT_EQ(claims(all, {.compiler = ""}), 0u);
  EXPECT_EQ(claims(all, {.exact = true}), 0u);
  EXPECT_EQ(claims(all, {.left_out = {"claim_regions"}}), 0u);
  Behavior other = all;
  other.flags = PADDLE_COMPILER_TRAINING | PADDLE_COMPILER_KEEPS_BITS;
  EXPECT_EQ(claims(other, {.exact = true}), 1u);
  other.flags = 0;
  EXPECT_EQ(claims(other, {}), 0u) << "the function updates a parameter";
  other = all;
  other.least_operations = 3;
  EXPECT_EQ(claims(other, {}), 0u);
}

TEST(PluginCompiler, WithoutItsCompilerARegionRunsOperationByOperation) {
  const auto f = function_of(kX,
                             "    %1 = plugin.region([%0]) {compiler = 'gone.loops'} : float32[4] "
                             "(%2 : float32[4]) {\n"
                             "      %3 = exp(%2) : float32[4]\n"
                             "      %4 = exp(%3) : float32[4]\n"
                             "      yield %4\n    }\n"
                             "    return %1 'y'\n");
  ir::verify(*f);
  runtime::Executable executable(f);
  EXPECT_FLOAT_EQ(static_cast<float>(executable.run({Array::zeros(DType::kF32, {4})})[0].number(1)),
                  std::exp(1.0f));
}

}  // namespace
}  // namespace paddle::plugin
