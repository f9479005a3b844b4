// Operations and kernels that are added while the program runs.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "ops/core/backend.h"
#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "ops/core/rules.h"

namespace paddle {
namespace {

void infer_same(InferContext& c) { c.result(c.type(0)); }

constexpr OperandDef kOperands[] = {
    {"x", OperandKind::kTensor, false, true, false, false, false, false}};
constexpr ResultDef kResults[] = {{"out", false, false, false}};
constexpr ParamDef kParams[] = {{true, 0}};
constexpr DTypeSet kFloats[] = {dtype_sets::kFloat};

/// A unary operation. `name` must live as long as the program.
OpDef unary(const char* name, const Provider* provider = nullptr) {
  OpDef def{};
  def.struct_size = sizeof def;
  def.name = name;
  def.family = def.doc = def.signature = def.layer_signature = def.no_gradient = def.overloads =
      def.images = "";
  def.operands = kOperands;
  def.operand_count = 1;
  def.results = kResults;
  def.result_count = 1;
  def.params = kParams;
  def.param_count = 1;
  def.in_place = -1;
  def.infer = infer_same;
  def.operand_dtypes = kFloats;
  def.provider = provider;
  return def;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Registration, AddsOperationsAndAliases) {
  static const Provider provider{"added", "1.2.0"};
  static const OpDef defs[] = {unary("added.one", &provider), unary("added.two", &provider)};
  static const Alias aliases[] = {{"added.uno", "added.one"}};
  const auto before = all_ops();
  const uint64_t epoch = registry_epoch();
  const Op* const relu = find_op("relu");
  register_operations(defs, aliases);
  EXPECT_EQ(all_ops().size(), before.size() + 2);
  EXPECT_EQ(before.back(), all_ops()[before.size() - 1]) << "an earlier list stays valid";
  EXPECT_EQ(find_op("relu"), relu);
  EXPECT_EQ(find_op("added.uno"), find_op("added.one"));
  EXPECT_EQ(op_at(get_op("added.two").id).name(), "added.two");
  EXPECT_EQ(find_provider("added"), &provider);
  EXPECT_EQ(all_aliases().back().alias, std::string("added.uno"));
  EXPECT_GT(registry_epoch(), epoch);
  EXPECT_EQ(operand_types(get_op("added.one"), 0), dtype_sets::kFloat);
}

TEST(Registration, AddsAllOrNone) {
  static const OpDef taken[] = {unary("fresh.one"), unary("relu")};
  const size_t before = all_ops().size();
  EXPECT_EQ(error_of([] { register_operations(taken); }), "operation 'relu' is registered twice");
  static const OpDef fine[] = {unary("fresh.two")};
  static const Alias bad[] = {{"fresh.alias", "fresh.three"}};
  EXPECT_EQ(error_of([] { register_operations(fine, bad); }),
            "alias 'fresh.alias' of the unknown operation 'fresh.three'");
  static const Alias used[] = {{"relu", "fresh.two"}};
  EXPECT_EQ(error_of([] { register_operations(fine, used); }),
            "alias 'relu' is the name of another operation");
  static OpDef incomplete[] = {unary("fresh.four")};
  incomplete[0].infer = nullptr;
  EXPECT_EQ(error_of([] { register_operations(incomplete); }),
            "operation 'fresh.four' has no inference rule");
  EXPECT_EQ(all_ops().size(), before);
  for (const char* name : {"fresh.one", "fresh.two", "fresh.alias", "fresh.four"})
    EXPECT_EQ(find_op(name), nullptr) << name;
}

TEST(Registration, ReadersRunMeanwhile) {
  static constexpr int kCount = 40;
  static std::array<std::string, kCount> names;
  static std::array<OpDef, kCount> defs;
  for (size_t i = 0; i < kCount; ++i) {
    names[i] = "meanwhile.op" + std::to_string(i);
    defs[i] = unary(names[i].c_str());
  }
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!stop)
        for (const Op* op : all_ops())
          if (find_op(op->name()) != op) ++wrong;
    });
  for (const OpDef& def : defs) register_operations({&def, 1});
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(find_op("meanwhile.op39"), nullptr);
}

TEST(Registration, KernelsThatAreAddedComeFirst) {
  register_backend({.name = "registration_test"});
  static const OpDef defs[] = {unary("kernels.one")};
  register_operations(defs);
  const Op& op = get_op("kernels.one");
  EXPECT_FALSE(has_kernel(op));
  static const int mark = 7;
  const auto prepare = [](const KernelRequest&, const void* context) -> std::unique_ptr<Kernel> {
    if (context != &mark) return nullptr;
    return make_kernel([](const RunContext&, void* const*, void* const*) {}, 0, "marked");
  };
  EXPECT_EQ(error_of([&] {
              const AddedKernel unknown[] = {{"kernels.one", "registration_test", prepare, &mark},
                                             {"kernels.none", "registration_test", prepare, &mark}};
              add_kernels(unknown);
            }),
            "a kernel of the unknown operation 'kernels.none'");
  EXPECT_FALSE(has_kernel(op));
  const AddedKernel kernels[] = {{"kernels.one", "registration_test", prepare, &mark}};
  add_kernels(kernels);
  EXPECT_TRUE(has_kernel(op));
  EXPECT_EQ(kernel_backends(op), std::vector<std::string>{"registration_test"});
  const Layout layout = Layout::contiguous(DType::kF32, {2});
  const Attrs attrs;
  const KernelRequest request{op, attrs, {&layout, 1}, {&layout, 1}};
  const auto kernel = prepare_kernel(request);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->implementation(), "marked");
}

TEST(Registration, AddsAllBackendsOrNone) {
  constexpr int16_t kKind = 71;
  const Backend first{.name = "backends.first", .device_kind = kKind};
  const Backend second{.name = "backends.second", .device_kind = kKind};
  const Backend half{.name = "backends.half",
                     .device_kind = kKind,
                     .prepare = [](const KernelRequest&) { return nothing_to_do(); }};
  const SourceLocation where{"plugin.yaml", 4, 2};
  const auto message_of = [&](const std::vector<Backend>& added) {
    try {
      add_backends(added, where);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of({first, half}),
            "plugin.yaml:4:2: backend 'backends.half' has one of prepare and has_kernel only");
  EXPECT_EQ(message_of({first, first}),
            "plugin.yaml:4:2: backend 'backends.first' is already registered");
  EXPECT_EQ(message_of({first, Backend{}}), "plugin.yaml:4:2: backend '' has no name");
  EXPECT_EQ(find_backend("backends.first"), nullptr) << "all or nothing";
  EXPECT_TRUE(backends_of({kKind, 0}).empty());
  add_backends({first}, where);
  const std::vector<const Backend*>& before = backends_of({kKind, 0});
  add_backends({second}, where);
  EXPECT_EQ(before.size(), 1u) << "an earlier list stays valid";
  ASSERT_EQ(backends_of({kKind, 0}).size(), 2u);
  EXPECT_EQ(std::string(backends_of({kKind, 0})[0]->name), "backends.second") << "asked first";
}

TEST(Registration, BackendsAreAddedWhileOthersLook) {
  constexpr int16_t kKind = 72;
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (!stop)
        for (const Backend* backend : backends_of({kKind, 0}))
          if (find_backend(backend->name) != backend) ++wrong;
    });
  static std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("backends.many" + std::to_string(i));
  for (const std::string& name : names)
    add_backends({{.name = name.c_str(), .device_kind = kKind}}, {});
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(backends_of({kKind, 0}).size(), 40u);
}

}  // namespace
}  // namespace paddle
