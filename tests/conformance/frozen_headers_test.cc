// Plug-ins with a part of each kind (tests/plugin/clients/every_kind.c), built with the frozen
// headers of each minor version in which kinds appeared, and with today's headers for that version.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/transport_kind.h"
#include "conformance/operators.h"
#include "conformance/passes.h"
#include "conformance/readers.h"
#include "conformance/tables.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "plugin/plugin.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "tensor/device.h"

namespace paddle::conformance {
namespace {

constexpr Extent kQuick{.quick = true, .seed = 7};

struct Client {
  const char* headers;  ///< "frozen", "target"
  uint32_t minor;
  std::string name() const { return str(headers, "_1_", minor); }
};

class FrozenHeaders : public testing::TestWithParam<Client> {
 protected:
  const plugin::Plugin& loaded = plugin::load(path());
  std::string path() const { return str(PADDLE_PLUGIN_CLIENTS, "/", GetParam().name(), ".so"); }
  std::string part(const char* name) const { return GetParam().name() + "." + name; }
  bool has(uint32_t minor) const { return GetParam().minor >= minor; }
};

constexpr uint32_t kNewest = 5;

/// The clients of the versions from a minor one on.
std::vector<Client> clients_since(uint32_t minor) {
  std::vector<Client> out;
  for (const char* headers : {"frozen", "target"})
    for (uint32_t each = minor; each <= kNewest; ++each) out.push_back({headers, each});
  return out;
}
std::string name_of(const testing::TestParamInfo<Client>& info) { return info.param.name(); }

// Kinds that later versions have added.
class FrozenHeadersSince2 : public FrozenHeaders {};
class FrozenHeadersSince3 : public FrozenHeaders {};
class FrozenHeadersSince4 : public FrozenHeaders {};
class FrozenHeadersSince5 : public FrozenHeaders {};

INSTANTIATE_TEST_SUITE_P(Versions, FrozenHeaders, testing::ValuesIn(clients_since(1)), name_of);
INSTANTIATE_TEST_SUITE_P(Versions, FrozenHeadersSince2, testing::ValuesIn(clients_since(2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Versions, FrozenHeadersSince3, testing::ValuesIn(clients_since(3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Versions, FrozenHeadersSince4, testing::ValuesIn(clients_since(4)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Versions, FrozenHeadersSince5, testing::ValuesIn(clients_since(5)),
                         name_of);

TEST_P(FrozenHeaders, GiveTheirVersion) {
  EXPECT_EQ(plugin::read_info(path()).abi_minor, GetParam().minor);
  EXPECT_EQ(loaded.devices.size(), 1u);
  EXPECT_EQ(loaded.passes.size() + loaded.tables.size() + loaded.transports.size(),
            has(2) ? 3u : 0u);
  EXPECT_EQ(loaded.readers.size(), has(4) ? 2u : has(2) ? 1u : 0u);
  EXPECT_EQ(loaded.compilers.size(), has(3) ? 1u : 0u);
  EXPECT_EQ(loaded.operations.size(), has(5) ? 2u : 1u);
}

TEST_P(FrozenHeaders, HaveOperationsAndKernels) {
  EXPECT_EQ(check_results(get_op(part("twice")), inspect::Mode::kEager, kQuick), "");
  EXPECT_EQ(check_kernel(get_op(part("twice")), kQuick), "");
}

TEST_P(FrozenHeadersSince5, HaveRulesInC) {
  EXPECT_EQ(check_results(get_op(part("half")), inspect::Mode::kEager, kQuick), "");
  EXPECT_EQ(check_results(get_op(part("half")), inspect::Mode::kCompiled, kQuick), "");
}

TEST_P(FrozenHeaders, HaveDevices) {
  const Device device = parse_device(GetParam().name());
  const Array there = Array::from<float>({1, 2}, {2}).to(device);
  runtime::EagerExecutor executor({.device = device});
  const InterpreterScope scope(executor);
  const Op& add = get_op("add");
  const Tensor sum = call_single(add, {Tensor(there), Tensor(there)}, default_attrs(add));
  EXPECT_EQ(sum.array().on_host().number(1), 4);
}

TEST_P(FrozenHeadersSince2, HavePassesTablesAndReaders) {
  EXPECT_EQ(check_pass(part("same"), "unusual", kQuick), "");
  const auto table = program::table_kinds().find(part("rows"));
  ASSERT_TRUE(table);
  for (const std::string& check : table_checks(kQuick))
    EXPECT_EQ(check_table(*table, {}, check, kQuick), "") << check;
  for (const std::string& check : reader_checks())
    EXPECT_EQ(check_reader(part("numbers"), {}, check, kQuick), "") << check;
}

TEST_P(FrozenHeadersSince4, HaveStreams) {
  for (const std::string& check : reader_checks())
    EXPECT_EQ(check_reader(part("stream"), {"epoch_samples=5"}, check, kQuick), "") << check;
}

TEST_P(FrozenHeadersSince2, HaveTransports) {
  const auto kind = comm::transport_kinds().find(part("alone"));
  ASSERT_TRUE(kind);
  const auto transport = kind->open(comm::JoinedRank{});
  ASSERT_TRUE(transport);
  transport->exchange(comm::Exchange{1}, {}, {});
}

TEST_P(FrozenHeadersSince3, HaveCompilers) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {3}};
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, type);
    const Tensor y = tracer.input({ir::PortKind::kValue, "y"}, type);
    const Op& add = get_op("add");
    tracer.output({ir::PortKind::kValue, "sum"}, call_single(add, {x, y}, default_attrs(add)));
  }
  const auto executable = runtime::compile(function, {.compiler = part("sums")});
  const std::vector<Array> inputs = {Array::from<float>({1, 2, 3}, {3}),
                                     Array::from<float>({4, 5, 6}, {3})};
  EXPECT_EQ(executable->run(inputs).at(0).number(2), 9);
  std::string names;
  for (const runtime::Instruction& each : executable->prepare(inputs).instructions())
    if (each.kernel) names += each.kernel->implementation() + " ";
  EXPECT_NE(names.find(GetParam().name() + ":sum"), std::string::npos) << names;
}

}  // namespace
}  // namespace paddle::conformance
