// Clients of the C structs that were built with other headers than today's: those of version 1.0,
// which is kept in abi/1.0, and later ones whose structs are longer; and a plug-in with a device.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>

#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "paddle/plugin/plugin.h"
#include "plugin/plugin.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"
#include "tensor/device_functions.h"

namespace paddle::plugin {
namespace {

std::string client(const std::string& name) {
  return std::string(PADDLE_PLUGIN_CLIENTS) + "/" + name + ".so";
}

Array eager(const std::string& op, const Array& x) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Op& operation = get_op(op);
  return call_single(operation, {Tensor(x)}, default_attrs(operation)).array();
}

TEST(Clients, OfThePreviousHeadersWork) {
  const Info info = read_info(client("frozen"));
  EXPECT_EQ(info.abi_minor, 0u);
  EXPECT_LT(info.abi_minor, PADDLE_PLUGIN_ABI_MINOR + 0u);
  load(client("frozen"));
  EXPECT_EQ(eager("frozen.twice", Array::from<float>({1, 2, 3, 4}, {4})).number(3), 8)
      << "by its kernel";
  EXPECT_EQ(eager("frozen.twice", Array::from<float>({1, 2}, {2})).number(1), 4) << "by its body";
}

TEST(Clients, WithLongerStructsWork) {
  load(client("longer"));
  EXPECT_EQ(eager("longer.thrice", Array::scalar(5.0f)).number(), 15);
  EXPECT_EQ(eager("longer.thrice", Array::from<float>({1, 2}, {2})).number(1), 6);
}

TEST(Clients, ForAnEarlierVersionHaveItsStructs) {
  EXPECT_EQ(read_info(client("target_minor")).abi_minor, 0u);
  load(client("target_minor"));
  EXPECT_EQ(eager("target_minor.twice", Array::from<float>({1, 2, 3}, {3})).number(2), 6);

  void* const library = dlopen(client("target_minor").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const before = dlopen(client("frozen_layout").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library && before) << dlerror();
  const auto today = reinterpret_cast<const size_t* (*)()>(dlsym(library, "target_sizes"));
  const auto frozen = reinterpret_cast<const size_t* (*)(size_t*)>(dlsym(before, "frozen_sizes"));
  size_t count = 0;
  const size_t* const sizes = frozen(&count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(today()[i], sizes[i]) << "struct " << i;

  // A host of version 1.0 gives it structs that end early.
  const auto entry =
      reinterpret_cast<paddle_plugin_main_function>(dlsym(library, "paddle_plugin_main"));
  const size_t end = offsetof(paddle_plugin, start) + sizeof(paddle_plugin::start);
  std::vector<std::byte> memory(end + 64, std::byte{0x5a});
  auto* const plugin = reinterpret_cast<paddle_plugin*>(memory.data());
  std::memset(plugin, 0, end);
  plugin->struct_size = static_cast<uint32_t>(end);
  paddle_host host{};
  host.struct_size = static_cast<uint32_t>(sizes[2]);
  EXPECT_EQ(entry(&host, plugin), PADDLE_OK);
  EXPECT_NE(plugin->kernels, nullptr);
  EXPECT_EQ(plugin->needs_minor, 0u);
  for (size_t i = end; i < memory.size(); ++i) EXPECT_EQ(memory[i], std::byte{0x5a}) << i;
}

TEST(Clients, FieldsAreWhereTheyWereInThePreviousHeaders) {
  struct Field {
    const char* name;
    size_t offset;
  };
  static const Field today[] = {
#define FIELD(type, field) {#type "." #field, offsetof(type, field)},
#include "plugin/abi/layout-inl.h"
  };
  void* const library = dlopen(client("frozen_layout").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto fields = reinterpret_cast<const Field* (*)(size_t*)>(dlsym(library, "frozen_fields"));
  size_t count = 0;
  const Field* const before = fields(&count);
  ASSERT_EQ(count, std::size(today));
  for (size_t i = 0; i < count; ++i) {
    EXPECT_STREQ(before[i].name, today[i].name);
    EXPECT_EQ(before[i].offset, today[i].offset) << today[i].name;
  }
  const auto device = reinterpret_cast<const void* (*)()>(dlsym(library, "frozen_device"));
  const auto& table = *static_cast<const paddle_device_api*>(device());
  EXPECT_LT(table.struct_size, sizeof table);
  const Device frozen{register_device_kind(table), 0};
  EXPECT_EQ(frozen.text(), "frozen_device");
  EXPECT_FALSE(has_graphs(frozen));
  EXPECT_EQ(Array::from<float>({1, 2}, {2}).to(frozen).on_host().number(1), 2);
}

TEST(Clients, DevicesOfAPluginComputeWithItsKernels) {
  const Plugin& plugin = load(client("device"));
  EXPECT_EQ(plugin.devices, std::vector<std::string>{"shadow"});
  const Device shadow = parse_device("shadow");
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {3}};
    const Tensor w = tracer.input({ir::PortKind::kParameter, "w"}, type);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, type);
    tracer.output({ir::PortKind::kValue, "y"}, ops::cumsum(w + x, 0));
    // A view with strides, which the device has no kernel to copy.
    const Tensor square = ops::reshape(w, {3, 1}) * ops::reshape(x, {1, 3});
    tracer.output({ir::PortKind::kValue, "z"},
                  ops::cumsum(ops::flip(ops::transpose(square, {1, 0}), {0}), 1));
    tracer.output({ir::PortKind::kParameter, "w"}, w + x);
  }
  const auto executable = runtime::compile(function, {.target = {.device = shadow}});
  const Array w = Array::from<float>({1, 2, 3}, {3}).to(shadow);
  const int64_t before = runtime::host_fallbacks()["add"];
  for (int run = 1; run < 4; ++run) {
    const Array x = Array::from<float>({1, 1, 1}, {3});
    const std::vector<Array>& outputs = executable->run({w, x});
    EXPECT_EQ(outputs[0].number(2), 6 + 3 * run);
    EXPECT_EQ(outputs[1].number(2), 3 + 3 * run) << "the sum of a row of equal columns";
  }
  EXPECT_EQ(w.on_host().number(2), 6);
  EXPECT_EQ(runtime::host_fallbacks()["add"], before);
  std::string names;
  for (const runtime::Instruction& each :
       executable->prepare({w, Array::zeros(DType::kF32, {3})}).instructions())
    if (each.kernel) names += each.kernel->implementation() + " ";
  EXPECT_NE(names.find("shadow:sum"), std::string::npos) << names;
  EXPECT_NE(names.find("host:"), std::string::npos) << names;
}

}  // namespace
}  // namespace paddle::plugin
