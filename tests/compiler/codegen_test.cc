// Groups as machine code: the bits of the same groups run block by block, for every operation that
// the generator knows, every form of operand, odd sizes and all schedules.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/parallel.h"
#include "compiler/codegen/compiled_fusion.h"
#include "compiler/codegen/compiler.h"
#include "compiler/codegen/schedule.h"
#include "kernels/elementwise/loops.h"
#include "kernels/fusion/block_interpreter.h"
#include "ops/core/call.h"
#include "runtime/execute.h"
#include "support/codegen_fixture.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using codegen::Compiler;
using namespace testing_support;

/// Numbers of all sorts, the difficult ones often.
Array numbers(DType dtype, const Dims& shape, uint32_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0,  -0.0,  kInfinity, -kInfinity, std::nan(""), 1,    -1,   1e-310,
                            0.5,  1e-40, -1e-42,    3.4e38,     -1e300,       88.8, -104, 2.5,
                            -2.5, 6,     3,         1e-8};
  testing_support::Generator generator(seed);
  Array a = Array::empty(DType::kF64, shape);
  for (int64_t i = 0; i < a.size(); ++i) {
    const uint32_t bits = generator.next();
    a.data<double>()[i] = bits % 5 == 0 ? special[bits / 5 % std::size(special)]
                                        : (static_cast<double>(bits % 20011) - 10000) / 1500;
  }
  return a.cast(dtype);
}

Array memory_for(const Layout& layout) {
  Array a = Array::empty(layout.dtype, layout.shape);
  if (a.size() > 0) std::memset(a.raw(), 0xa5, static_cast<size_t>(a.size() * item_size(a.dtype)));
  return a;
}

template <class T>
std::string differing(const Array& a, const Array& b) {
  for (int64_t i = 0; i < a.size(); ++i) {
    const T x = a.data<T>()[i], y = b.data<T>()[i];
    if (std::memcmp(&x, &y, sizeof x) == 0) continue;
    if constexpr (std::is_floating_point_v<T>)
      if (x != x && y != y) continue;
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      const float u = x, v = y;
      if (u != u && v != v) continue;
    }
    return str("element ", i, " of ", a.size(), ": ", static_cast<double>(x), " against ",
               static_cast<double>(y));
  }
  return {};
}

/// "" if both have the same bits, any NaN being one.
std::string difference(const Array& a, const Array& b) {
  return visit_dtype(a.dtype,
                     [&](auto tag) { return differing<typename decltype(tag)::type>(a, b); });
}

/// "" if both kernels agree, also when a result reuses the memory of an operand.
std::string compare(const FusedRequest& request, const Kernel& expected, const Kernel& kernel,
                    const std::vector<Array>& operands) {
  std::vector<void*> in;
  for (const Array& a : operands) in.push_back(const_cast<void*>(a.raw()));
  std::vector<Array> a, b;
  std::vector<void*> to_a, to_b;
  for (const Layout& result : request.results) {
    to_a.push_back(a.emplace_back(memory_for(result)).raw());
    to_b.push_back(b.emplace_back(memory_for(result)).raw());
  }
  expected.run({}, in.data(), to_a.data());
  kernel.run({}, in.data(), to_b.data());
  for (size_t r = 0; r < a.size(); ++r)
    if (const auto text = difference(a[r], b[r]); !text.empty())
      return str("result ", r, ", ", text);
  for (size_t k = 0; k < operands.size(); ++k) {
    const Layout& layout = request.operands[k];
    if (layout.dtype != request.results[0].dtype || layout.shape != request.results[0].shape ||
        !layout.is_contiguous())
      continue;
    Array shared = memory_for(request.results[0]);
    std::memcpy(shared.raw(), in[k], static_cast<size_t>(shared.size() * item_size(shared.dtype)));
    in[k] = to_b[0] = shared.raw();
    kernel.run({}, in.data(), to_b.data());
    if (const auto text = difference(a[0], shared); !text.empty())
      return str("in place of operand ", k, ", ", text);
    break;
  }
  return {};
}

// ---- every operation

/// Defaults, and numbers for what has none; false if something else is asked for.
bool give_attrs(const Op& op, Attrs& attrs) {
  attrs.values.resize(op.attrs().size());
  for (size_t i = 0; i < op.attrs().size(); ++i) {
    const AttrDef& def = op.attrs()[i];
    AttrValue& value = attrs.values[i];
    if (!def.required) {
      value = op.defaults[i];
    } else if (def.type == AttrType::kFloat || def.type == AttrType::kNumber) {
      value = 1.5;
    } else if (def.type == AttrType::kInt) {
      value = int64_t{1};
    } else {
      return false;
    }
  }
  return true;
}

TEST_F(Codegen, EveryOperationGivesTheBitsOfItsLoop) {
  Compiler compiler("", module_path());
  std::set<std::string> known;
  int kernels = 0;
  for (const Op* const op : all_ops()) {
    if (!op->has(kElementwise) || op->has(kRandom) || op->results().size() != 1) continue;
    if (op->operands().empty() || op->operands().size() > 3) continue;
    Attrs attrs;
    if (!give_attrs(*op, attrs)) continue;
    for (const DType dtype : {DType::kBool, DType::kI8, DType::kI32, DType::kI64, DType::kU8,
                              DType::kU32, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      FusedRequest request;
      FusedStep step{op, attrs, {}, dtype};
      std::vector<DType> types;
      for (size_t k = 0; k < op->operands().size(); ++k) {
        types.push_back(op->name() == "where" && k == 0 ? DType::kBool : dtype);
        step.inputs.push_back(static_cast<int>(k));
      }
      try {
        Tensors examples;
        for (const DType t : types) examples.push_back(Tensor(Array::zeros(t, {2})));
        step.result = infer_results(*op, attrs, examples).results[0].dtype;
      } catch (const Error&) {
        continue;  // not for this type
      }
      if (op->has(kFloatInputs) && !is_float(dtype)) continue;  // cast before it comes to a kernel
      request.steps = {step};
      request.result_values = {static_cast<int>(types.size())};
      for (const int64_t n : {1, 15, 16, 33, 1000}) {
        request.operands.clear();
        std::vector<Array> operands;
        for (size_t k = 0; k < types.size(); ++k) {
          operands.push_back(numbers(types[k], {n}, static_cast<uint32_t>(n + 7 * int64_t(k))));
          request.operands.push_back(Layout::of(operands.back()));
        }
        request.shape = {n};
        request.results = {Layout::contiguous(step.result, {n})};
        const auto expected = cpu::prepare_fused_group(request);
        const auto kernel = codegen::prepare_compiled_group(request, compiler);
        if (!expected || !kernel) {
          EXPECT_FALSE(kernel) << op->name();
          break;
        }
        ++kernels;
        known.insert(std::string(op->name()));
        EXPECT_EQ(compare(request, *expected, *kernel, operands), "")
            << op->name() << " of " << text(dtype) << ", " << n << " elements";
      }
    }
  }
  EXPECT_EQ(compiler.problem(), "");
  for (const char* const name :
       {"add",      "subtract", "multiply",  "divide", "maximum",     "minimum", "exp",  "log",
        "tanh",     "erf",      "sqrt",      "rsqrt",  "relu",        "gelu",    "silu", "sigmoid",
        "softplus", "where",    "less_than", "equal",  "logical_not", "isnan",   "clip", "pow",
        "neg",      "abs",      "square",    "sign",   "floor"})
    EXPECT_EQ(known.count(name), 1u) << name;
  EXPECT_GE(known.size(), 90u);
  EXPECT_GT(kernels, 1500);
}

TEST_F(Codegen, ConversionsGiveTheSameBits) {
  Compiler compiler("", module_path());
  const Op& cast = get_op("cast");
  const DType types[] = {DType::kBool, DType::kI8,  DType::kI16, DType::kI32, DType::kI64,
                         DType::kU8,   DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                         DType::kBF16, DType::kF32, DType::kF64};
  int compiled = 0;
  for (const DType from : types)
    for (const DType to : types) {
      FusedRequest request;
      Attrs attrs;
      attrs.values.resize(1);
      attrs.values[0] = to;
      request.steps = {{&cast, attrs, {0}, to}};
      request.result_values = {1};
      const Array x = numbers(from, {777}, 3);
      request.operands = {Layout::of(x)};
      request.shape = {777};
      request.results = {Layout::contiguous(to, {777})};
      const auto kernel = codegen::prepare_compiled_group(request, compiler);
      if (!kernel) {
        EXPECT_EQ(to, DType::kU64) << text(from);
        continue;
      }
      ++compiled;
      EXPECT_EQ(compare(request, *cpu::prepare_fused_group(request), *kernel, {x}), "")
          << text(from) << " to " << text(to);
    }
  EXPECT_GT(compiled, 150);
}

// ---- forms of operands

/// tanh(a * b) + c, that below d, and the one or the other.
FusedRequest example(const std::vector<Layout>& operands, const Dims& shape, DType second) {
  const Attrs none;
  FusedRequest request;
  request.shape = shape;
  request.operands = operands;
  request.steps = {{&get_op("multiply"), none, {0, 1}, DType::kF32},
                   {&get_op("tanh"), none, {4}, DType::kF32},
                   {&get_op("add"), none, {5, 2}, DType::kF32},
                   {&get_op("less_than"), none, {6, 3}, DType::kBool},
                   {&get_op("where"), none, {7, 6, 0}, DType::kF32}};
  request.results = {Layout::contiguous(DType::kF32, shape),
                     Layout::contiguous(DType::kBool, shape), Layout::contiguous(second, shape)};
  request.result_values = {8, 7, 5};
  return request;
}

/// `full` seen with strides so that it has this shape: broadcast, sliced or transposed.
struct Form {
  Dims shape, strides;
  int64_t offset = 0, elements = 1;
};

TEST_F(Codegen, EveryFormOfOperand) {
  Compiler compiler("", module_path());
  struct Case {
    Dims shape;
    std::vector<Form> forms;
  };
  const std::vector<Case> cases = {
      {{3, 5, 64},
       {{{64}, {1}, 0, 64},
        {{5, 1}, {1, 1}, 0, 5},
        {{3, 1, 1}, {1, 1, 1}, 0, 3},
        {{}, {}, 0, 1},
        {{5, 64}, {64, 1}, 0, 320},
        {{3, 5, 64}, {1, 3, 15}, 0, 960},
        {{3, 5, 64}, {640, 128, 2}, 1, 1920},
        {{3, 5, 64}, {320, -64, 1}, 256, 960},
        {{3, 5, 64}, {500, 100, 1}, 7, 1600},
        {{1, 5, 1}, {5, 1, 1}, 0, 5}}},
      {{100, 7}, {{{7}, {1}, 0, 7}, {{100, 1}, {1, 1}, 0, 100}, {{100, 7}, {1, 100}, 0, 700}}},
      {{2, 6, 10, 11}, {{{6, 1, 1}, {1, 1, 1}, 0, 6}, {{1, 1, 10, 11}, {110, 110, 11, 1}, 0, 110}}},
      {{9000},
       {{{}, {}, 0, 1},
        {{9000},
         {
             3,
         },
         0,
         27000},
        {{1}, {1}, 0, 1}}},
      {{1}, {{{1}, {1}, 0, 1}, {{}, {}, 0, 1}}},
      {{40, 257}, {{{257}, {1}, 0, 257}, {{40, 1}, {1, 1}, 0, 40}}},
      {{2, 3, 4, 5}, {{{3, 1, 5}, {5, 5, 1}, 0, 15}, {{2, 1, 4, 1}, {4, 4, 1, 1}, 0, 8}}},
      {{6, 4096}, {{{4096}, {1}, 0, 4096}, {{6, 1}, {1, 1}, 0, 6}}},
  };
  const int threads = thread_count();
  for (const int use : {1, 4}) {
    set_thread_count(use);
    for (const Case& c : cases)
      for (const Form& form : c.forms)
        for (const DType dtype : {DType::kF32, DType::kBF16})
          for (size_t place = 0; place < 4; ++place) {
            std::vector<Array> arrays;
            std::vector<Layout> layouts;
            for (size_t k = 0; k < 4; ++k) {
              const bool special = k == place || (place == 0 && k == 2);
              const DType type = special ? dtype : DType::kF32;
              Array a = numbers(type, special ? Dims{form.elements} : c.shape,
                                static_cast<uint32_t>(11 * k + 1));
              layouts.push_back(Layout::of(a));
              if (special) {
                a.offset = form.offset;
                layouts.back().shape = form.shape;
                layouts.back().strides = form.strides;
              }
              arrays.push_back(a);
            }
            // In a group 16-bit operands of an operation are all of one type; casts come between.
            const bool half = dtype == DType::kBF16;
            FusedRequest request = example(layouts, c.shape, half ? DType::kBF16 : DType::kF32);
            if (half) {
              const Attrs none;
              Attrs to_f32;
              to_f32.values.resize(1);
              to_f32.values[0] = DType::kF32;
              for (FusedStep& step : request.steps)
                for (int& input : step.inputs) input += 4;
              std::vector<FusedStep> casts;
              for (int k = 0; k < 4; ++k)
                casts.push_back({&get_op("cast"), to_f32, {k}, DType::kF32});
              request.steps.insert(request.steps.begin(), casts.begin(), casts.end());
              request.result_values = {12, 11, 9};
            }
            const auto expected = cpu::prepare_fused_group(request);
            const auto kernel = codegen::prepare_compiled_group(request, compiler);
            ASSERT_TRUE(expected && kernel);
            EXPECT_EQ(compare(request, *expected, *kernel, arrays), "")
                << str(c.shape, " with an operand of ", form.shape, " strides ", form.strides,
                       " in place ", place, ", ", text(dtype), ", ", use, " threads");
          }
  }
  set_thread_count(threads);
}

TEST_F(Codegen, GroupsOfNoElementsAreLeftAlone) {
  Compiler compiler("", module_path());
  const std::vector<Layout> operands(4, Layout::contiguous(DType::kF32, {3, 0}));
  EXPECT_FALSE(codegen::prepare_compiled_group(example(operands, {3, 0}, DType::kF32), compiler));
}

TEST(CodegenModule, IsNotNeeded) {
  runtime::register_backends();
  Compiler compiler("", "/nonexistent/module.so");
  const std::vector<Layout> operands(4, Layout::contiguous(DType::kF32, {64}));
  EXPECT_FALSE(codegen::prepare_compiled_group(example(operands, {64}, DType::kF32), compiler));
  if (can_compile()) {
    EXPECT_NE(compiler.problem().find("/nonexistent/module.so"), std::string::npos);
  }
  EXPECT_TRUE(cpu::prepare_fused_group(example(operands, {64}, DType::kF32)));
}

// ---- schedules

class Forced final : public codegen::ScheduleHook {
 public:
  explicit Forced(codegen::Schedule schedule) : schedule_(schedule) {}
  std::optional<codegen::Schedule> choose(const FusedRequest&,
                                          const codegen::ScheduledGroup& group) override {
    keys.insert(group.key);
    return schedule_;
  }
  std::set<std::string> keys;

 private:
  codegen::Schedule schedule_;
};

const codegen::Schedule kSchedules[] = {{2, 0, 0},       {4, 64, 0},     {8, 1 << 20, 0},
                                        {1, 100, 64},    {2, 777, 1000}, {4, 1, 1},
                                        {1, 1 << 20, 0}, {8, 5, 1 << 20}};

/// The results of a kernel, whose operands are these.
std::vector<Array> results_of(const FusedRequest& request, const Kernel& kernel,
                              const std::vector<Array>& operands) {
  const auto scratch = Storage::allocate(std::max<size_t>(64, kernel.scratch_bytes()));
  std::vector<void*> in, to;
  std::vector<Array> out;
  for (const Array& a : operands) in.push_back(const_cast<void*>(a.raw()));
  for (const Layout& result : request.results)
    to.push_back(out.emplace_back(memory_for(result)).raw());
  kernel.run({scratch->data(), nullptr}, in.data(), to.data());
  return out;
}

TEST_F(Codegen, SchedulesKeepTheBits) {
  Compiler compiler("", module_path());
  struct Case {
    std::string name;
    FusedRequest request;
    std::vector<Array> operands;
  };
  std::vector<Case> cases;
  for (const Dims& shape : {Dims{9001}, Dims{40, 257}, Dims{3, 5, 64}, Dims{100, 7}}) {
    const Dims turned(shape.rbegin(), shape.rend());
    for (const bool packs : {false, true}) {
      Case c{str(shape, packs ? " packed" : ""), {}, {}};
      std::vector<Layout> layouts;
      for (uint32_t k = 0; k < 4; ++k) {
        c.operands.push_back(numbers(DType::kF32, packs && k == 1 ? turned : shape, k + 1));
        layouts.push_back(Layout::of(c.operands.back()));
      }
      if (packs) {
        std::reverse(layouts[1].shape.begin(), layouts[1].shape.end());
        std::reverse(layouts[1].strides.begin(), layouts[1].strides.end());
      }
      c.request = example(layouts, shape, DType::kF32);
      cases.push_back(std::move(c));
    }
  }
  // Sums over rows, whose accumulators are lanes, and over columns.
  const Op& sum = get_op("sum");
  for (const int64_t axis : {0, 1}) {
    const Dims shape = {70, 1000};
    Case c{str("sum over axis ", axis), {}, {numbers(DType::kF32, shape, 5)}};
    Attrs attrs{sum.defaults, {}};
    for (size_t i = 0; i < sum.attrs().size(); ++i)
      if (std::string_view(sum.attrs()[i].name) == "axis")
        attrs.values[i] = std::vector<int64_t>{axis};
    c.operands.push_back(numbers(DType::kF32, shape, 6));
    c.request.shape = shape;
    for (const Array& a : c.operands) c.request.operands.push_back(Layout::of(a));
    c.request.steps = {{&get_op("minimum"), {}, {0, 1}, DType::kF32},
                       {&get_op("tanh"), {}, {2}, DType::kF32},
                       {&sum, attrs, {3}, DType::kF32}};
    c.request.results = {Layout::contiguous(DType::kF32, {shape[static_cast<size_t>(1 - axis)]})};
    c.request.result_values = {4};
    cases.push_back(std::move(c));
  }
  const int threads = thread_count();
  std::set<std::string> keys;
  for (const Case& c : cases) {
    const auto usual = codegen::prepare_compiled_group(c.request, compiler);
    ASSERT_TRUE(usual) << c.name;
    const std::vector<Array> expected = results_of(c.request, *usual, c.operands);
    for (const int use : {1, 3}) {
      set_thread_count(use);
      for (const codegen::Schedule& schedule : kSchedules) {
        Forced forced(schedule);
        const codegen::ScheduleHookScope scope(&forced);
        const auto kernel = codegen::prepare_compiled_group(c.request, compiler);
        ASSERT_TRUE(kernel) << c.name << ", " << codegen::text(schedule);
        keys.insert(forced.keys.begin(), forced.keys.end());
        const std::vector<Array> got = results_of(c.request, *kernel, c.operands);
        for (size_t r = 0; r < got.size(); ++r)
          EXPECT_EQ(difference(expected[r], got[r]), "")
              << c.name << ", " << codegen::text(schedule) << ", " << use << " threads";
      }
    }
    set_thread_count(threads);
  }
  // A key is of one group; in one dimension there is nothing to turn, which makes two the same.
  EXPECT_EQ(keys.size(), cases.size() - 1);
}

TEST(Schedules, AreTextAndBack) {
  for (const codegen::Schedule& schedule : kSchedules)
    EXPECT_EQ(codegen::parse_schedule(codegen::text(schedule)), schedule);
  for (const char* wrong :
       {"", "unroll=2", "unroll=3 grain=0 tile=0", "unroll=2 grain=-1 tile=0",
        "unroll=2 grain=x tile=0", "grain=0 unroll=2 tile=0", "unroll=2 grain=0 tile=0 x",
        "unroll=2 grain=99999999999999999999 tile=0", "unroll=16 grain=0 tile=0"})
    EXPECT_FALSE(codegen::parse_schedule(wrong)) << wrong;
}

}  // namespace
}  // namespace paddle
