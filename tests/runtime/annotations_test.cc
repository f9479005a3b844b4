// Names and placements of values, and scopes of slots: they survive printing and parsing, copies,
// replay, and every category of passes.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/clone.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using ir::Function;
using ir::Placement;
using ir::Region;
using ir::Value;

/// Names and placements of all values, in the order of the text.
std::vector<std::pair<std::string, Placement>> annotations(const Function& function) {
  std::vector<std::pair<std::string, Placement>> out;
  const auto add = [&](const Value* v) { out.emplace_back(v->name, v->placement); };
  const std::function<void(const Region&)> walk = [&](const Region& region) {
    for (const Value* v : region.arguments) add(v);
    for (const auto& o : region.operations) {
      for (const Value* v : o->results) add(v);
      for (const auto& nested : o->regions) walk(*nested);
    }
  };
  walk(function.body);
  for (const Value& v : function.values())
    if (v.constant) add(&v);
  return out;
}

std::set<std::string> names(const Function& function) {
  std::set<std::string> out;
  for (const auto& [name, placement] : annotations(function))
    if (!name.empty()) out.insert(name);
  return out;
}

/// A function of random operations on [4, 6] arrays, with control flow, whose values have random
/// names and placements.
class RandomFunction {
 public:
  explicit RandomFunction(unsigned seed) : random_(seed) {}

  std::shared_ptr<Function> make() {
    auto function = std::make_shared<Function>("main");
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {4, 6}};
    Tensors pool = {tracer.input({ir::PortKind::kValue, "x"}, type),
                    tracer.input({ir::PortKind::kState, "s"}, type)};
    grow(pool, 8 + draw(12), 0);
    tracer.output({ir::PortKind::kValue, "y"}, pool.back());
    tracer.output({ir::PortKind::kState, "s"}, pool[pool.size() / 2]);
    for (Value& v : function->values()) {
      v.name = name();
      while (draw(3) == 0)
        v.placement.push_back(
            {.axis = draw(3),
             .dim = draw(2),
             .outer = 1 + draw(3),
             .units = 1 + draw(1000),
             .order = draw(2) == 0 ? ir::SplitOrder::kStraight : ir::SplitOrder::kZigzag});
      if (v.type.shape.empty()) v.placement.clear();
    }
    return function;
  }

  std::string name() {
    static const char* const kPieces[] = {"x", "a.b", "'", "\\", " ", "é", "//", "%1", "\"", "["};
    std::string out;
    while (draw(3) > 0) out += kPieces[draw(10)];
    return out;
  }
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

 private:
  Tensor pick(const Tensors& pool) { return pool[static_cast<size_t>(draw(int(pool.size())))]; }

  void grow(Tensors& pool, int count, int depth) {
    for (int i = 0; i < count; ++i) {
      switch (draw(depth < 2 ? 8 : 6)) {
        case 0:
          pool.push_back(ops::relu(pick(pool)));
          break;
        case 1:
          pool.push_back(pick(pool) * pick(pool));
          break;
        case 2:
          pool.push_back(pick(pool) + 0.25);
          break;
        case 3:
          pool.push_back(ops::softmax(pick(pool), -1));
          break;
        case 4:
          pool.push_back(ops::matmul(pick(pool), Tensor(Array::zeros(DType::kF32, {6, 6}))));
          break;
        case 5:
          pool.push_back(ops::reshape(ops::transpose(pick(pool), {1, 0}), {Dim(4), Dim(6)}));
          break;
        case 6:
          pool.push_back(current_interpreter().branch(
              ops::greater_than(ops::sum(pick(pool)), Tensor::number(0.0)),
              [&](const Tensors&) { return nested(pool, depth); },
              [&](const Tensors&) { return nested(pool, depth); })[0]);
          break;
        default:
          pool.push_back(current_interpreter().loop(
              [](const Tensors& s) {
                return Tensors{ops::less_than(s[1], Tensor::number(int64_t{2}))};
              },
              [&](const Tensors& s) {
                Tensors inside = pool;
                inside.push_back(s[0]);
                return Tensors{nested(inside, depth)[0], s[1] + Tensor::number(int64_t{1})};
              },
              {pick(pool), full_of({}, 0, DType::kI64)}, 5)[0]);
      }
    }
  }
  Tensors nested(Tensors pool, int depth) {
    grow(pool, 1 + draw(4), depth + 1);
    return {pool.back()};
  }

  std::mt19937 random_;
};

/// Passes every call on.
class Same final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override {
    const ScopedInterpreter below(next());
    return next().apply(call);
  }
};

TEST(Annotations, RandomModulesReadBackTheSame) {
  runtime::register_backends();
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomFunction random(seed);
    ir::Module module;
    module.states.push_back({.name = "s",
                             .type = {DType::kF32, {4, 6}},
                             .initializer = random.name(),
                             .scope = static_cast<ir::SlotScope>(random.draw(3)),
                             .placement = {{.axis = 1, .dim = 0, .outer = 1, .units = 4}}});
    module.parameters.push_back({.name = "p",
                                 .type = {DType::kF32, {3}},
                                 .initializer = "zeros",
                                 .trainable = random.draw(2) == 0,
                                 .scope = static_cast<ir::SlotScope>(random.draw(3))});
    module.functions.push_back(random.make());
    const std::string text = ir::print(module);
    const ir::Module again = ir::parse(text, "test.txt");
    ir::verify(again);
    ASSERT_EQ(annotations(*again.functions[0]), annotations(*module.functions[0])) << text;
    EXPECT_EQ(again.states[0].scope, module.states[0].scope);
    EXPECT_EQ(again.states[0].initializer, module.states[0].initializer);
    EXPECT_EQ(again.states[0].placement, module.states[0].placement);
    EXPECT_EQ(again.parameters[0].trainable, module.parameters[0].trainable);
    EXPECT_EQ(again.parameters[0].scope, module.parameters[0].scope);
    const std::string second = ir::print(again);  // values are renumbered
    EXPECT_EQ(ir::print(ir::parse(second, "test.txt")), second);

    // A copy has them all, and a replay under an interpreter that changes nothing.
    const auto copy = ir::clone(*module.functions[0]);
    EXPECT_EQ(names(*copy), names(*module.functions[0]));
    Same same;
    const auto replayed = ir::retraced(*module.functions[0], same);
    const auto wanted = names(*module.functions[0]);
    for (const auto& name : names(*replayed)) EXPECT_TRUE(wanted.contains(name));
    for (const auto& o : module.functions[0]->body.operations)
      for (const Value* v : o->results)
        EXPECT_TRUE(v->name.empty() || names(*replayed).contains(v->name)) << v->name;
  }
}

TEST(Annotations, StandBesideLocations) {
  const std::string text =
      "module 'm' {\n  func 'f'(\n      %0 'in' : float32[4] split[0: 1x8 over 0] 'x') {\n"
      "    %1 'a' = relu(%0) : float32[4] split[0: 1x8 over 0]  // m.yaml:1:2 @layer\n"
      "    %2 = tanh(%1) : float32[4]  // m.yaml:2:2 @layer (gradient)\n"
      "    return %2 'y'\n  }\n}\n";
  runtime::register_backends();
  const ir::Module module = ir::parse(text, "test.txt");
  EXPECT_EQ(ir::print(module), text);
  const auto& operations = module.functions[0]->body.operations;
  EXPECT_EQ(operations.front()->location, "m.yaml:1:2 @layer");
  EXPECT_EQ(operations.back()->location, "m.yaml:2:2 @layer (gradient)");
  EXPECT_EQ(ir::print(*ir::clone(*module.functions[0])), ir::print(*module.functions[0]));
}

TEST(Annotations, DamageIsRejected) {
  for (const char* type :
       {"float32[4] split", "float32[4] split[]", "float32[4] split[1: 1x4 over 0]",
        "float32[4] split[0: 0x4 over 0]", "float32[4] split[0: 1x4 over]",
        "float32[4] split[0: 1x9999999999999999999 over 0]", "float32[4] split[0: 1x4 over 0"}) {
    const std::string text =
        str("module 'm' { func 'f'(%0 'n' : ", type, " 'x') { return %0 'y' } }");
    EXPECT_THROW(ir::parse(text, "test.txt"), Error) << type;
  }
  EXPECT_THROW(ir::parse("module 'm' { state 's' : float32[] = '' forever }", "t"), Error);
  EXPECT_THROW(ir::parse("module 'm' { func 'f'(%0 'n : float32[] 'x') { return } }", "t"), Error);
}

struct PassCase {
  const char* passes;  ///< names, one space between them
  const char* body;    ///< of a function of %0: float32[2, 32, 8, 8]
  std::vector<std::string> kept;
};

TEST(Annotations, PassesOfEachCategoryKeepNames) {
  runtime::register_backends();
  const std::string constants =
      "    %90 = constant float32[] [0.5]\n    %91 = constant uint8[] [3]\n"
      "    %92 = constant int8[32, 32, 1, 1] [" +
      [] {
        std::string all = "1";
        for (int i = 1; i < 32 * 32; ++i) all += i % 3 == 0 ? ", -2" : ", 1";
        return all;
      }() +
      "]\n    %93 = constant int8[] [0]\n    %94 'ones' = constant float32[8] [1.0, 1.0, 1.0, 1.0, "
      "1.0, 1.0, 1.0, 1.0]\n    %95 = constant float32[] [2.0]\n";
  const std::string image = "float32[2, 32, 8, 8]";
  const std::vector<PassCase> cases = {
      // A dropped value leaves its name at the one that is read instead.
      {"canonicalize",
       "%1 = relu(%0) : I\n %2 'kept' = reshape(%1) {shape = [2, 32, 8, 8]} : I\n "
       "%3 'end' = tanh(%2) : I\n",
       {"kept", "end"}},
      {"cse",
       "%1 = relu(%0) : I\n %2 'twin' = relu(%0) : I\n %3 'end' = multiply(%1, %2) : I\n",
       {"twin", "end"}},
      {"fold_constants",
       "%1 'folded' = add(%94, %94) : float32[8]\n %3 'end' = multiply(%0, %1) : I\n",
       {"folded", "end"}},
      {"rewrite",
       "%1 'gate' = sigmoid(%0) : I\n %2 'silu' = multiply(%1, %0) : I\n %3 'end' = tanh(%2) : I\n",
       {"silu", "end"}},
      {"assign_layouts dce",
       "%1 'weight' = cast(%92) {dtype = float32} : float32[32, 32, 1, 1]\n "
       "%2 'conv' = conv2d(%0, %1, _) : I\n %4 'act' = relu(%2) : I\n "
       "%5 'again' = conv2d(%4, %1, _) : I\n %3 'end' = mean(%5) {axis = [2, 3]} : float32[2, "
       "32]\n",
       {"weight", "conv", "act", "again", "end"}},
      {"fuse_elementwise",
       "%1 'a' = relu(%0) : I\n %2 'b' = tanh(%1) : I\n %4 'c' = multiply(%2, %1) : I\n "
       "%3 'end' = softmax(%4) : I\n",
       {"a", "b", "c", "end"}},
      {"lower_qdq dce",
       "%1 'in' = quantize(%0, %90, %91) {dtype = uint8} : uint8[2, 32, 8, 8]\n "
       "%2 'floats' = dequantize(%1, %90, %91) : I\n "
       "%4 'weight' = dequantize(%92, %90, %93) : float32[32, 32, 1, 1]\n "
       "%5 'conv' = conv2d(%2, %4, _) : I\n "
       "%6 'out' = quantize(%5, %95, %91) {dtype = uint8} : uint8[2, 32, 8, 8]\n "
       "%3 'end' = dequantize(%6, %95, %91) : I\n",
       {"in", "out", "end"}},
      {"schedule_updates_early",
       "%1 'a' = relu(%0) : I\n %4 'b' = tanh(%1) : I\n %2 'sum' = sum(%1) : float32[]\n "
       "%3 'end' = multiply(%4, %2) : I\n",
       {"a", "b", "sum", "end"}},
  };
  const std::vector<compiler::Pass> all = runtime::pass_pipeline();
  for (const PassCase& c : cases) {
    std::string body = c.body;
    for (size_t at; (at = body.find(": I")) != std::string::npos;) body.replace(at + 2, 1, image);
    const ir::Module module = ir::parse("module 'm' { func 'f'(%0 : " + image + " 'x') {\n" +
                                            constants + body + "return %3 'y' } }",
                                        c.passes);
    Function& f = *module.functions[0];
    const std::string before = ir::print(f);
    for (const std::string_view name : split(c.passes, ' ')) {
      if (name == "dce") {
        passes::remove_dead_code(f);
        continue;
      }
      const auto pass = std::find_if(all.begin(), all.end(),
                                     [&](const compiler::Pass& p) { return p.name == name; });
      ASSERT_NE(pass, all.end()) << name << " is not in the pipeline";
      pass->run(f);
    }
    ir::verify(module);
    const auto found = names(f);
    for (const std::string& name : c.kept)
      EXPECT_TRUE(found.contains(name)) << name << " is lost by " << c.passes << "\n"
                                        << ir::print(f);
    EXPECT_NE(ir::print(f), before) << c.passes << " did nothing";
  }
}

TEST(Annotations, DecompositionsKeepTheNameOfTheResult) {
  runtime::register_backends();
  const ir::Module module = ir::parse(
      "module 'm' { func 'f'(%0 : float32[4, 6] 'x') { %1 'act' = glu(%0) : float32[4, 3]\n "
      "%2 'end' = tanh(%1) : float32[4, 3]\n return %2 'y' } }",
      "test.txt");
  Function& f = *module.functions[0];
  constexpr Device kWithoutKernels{99, 0};
  passes::for_target(f, {.device = kWithoutKernels});
  ASSERT_GT(f.operation_count(), 2) << ir::print(f);
  EXPECT_EQ(names(f), (std::set<std::string>{"act", "end"})) << ir::print(f);
}

TEST(Annotations, BoundInputsHaveTheNamesOfTheirPorts) {
  Function f("f");
  f.add_input({ir::PortKind::kParameter, "layer.weight"}, {DType::kF32, {2}});
  Value* const w = f.body.arguments[0];
  f.add_output({ir::PortKind::kValue, "y"}, w);
  f.bind_input(0, Array::from<float>({1, 2}, {2}));
  EXPECT_EQ(w->name, "layer.weight");
  EXPECT_NE(ir::print(f).find("%0 'layer.weight' = constant float32[2] [1"), std::string::npos);
}

}  // namespace
}  // namespace paddle
