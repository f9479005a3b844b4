// Inconsistent nodes of com.microsoft: each is rejected with one line of kModel.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "onnx/graph/session.h"
#include "support/onnx_bytes.h"

namespace paddle::onnx {
namespace {

using namespace testing_support;

/// The error of a node with zero inputs of these shapes; a name starting with 'i' is int32, 'l'
/// int64, 'u' uint8.
std::string rejection(const std::string& type,
                      const std::vector<std::pair<std::string, Dims>>& inputs,
                      const std::vector<std::string>& attributes,
                      const std::vector<std::string>& outputs = {"y"}) {
  std::vector<std::string> names, tensors, values;
  for (const auto& [name, dims] : inputs) {
    names.push_back(name);
    if (name.empty()) continue;
    const int kind = name[0] == 'i' ? 6 : name[0] == 'l' ? 7 : name[0] == 'u' ? 2 : 1;
    const int64_t size = kind == 7 ? 8 : kind == 2 ? 1 : 4;
    const auto bytes = static_cast<size_t>(element_count(std::span<const int64_t>(dims)) * size);
    tensors.push_back(onnx_tensor(name, kind, dims, std::string(bytes, '\0')));
  }
  for (const auto& name : outputs)
    if (!name.empty()) values.push_back(value_info(name, 1, {}));
  const std::string node = onnx_node(type, names, outputs, attributes, "com.microsoft");
  const std::string path =
      testing::TempDir() + "/paddle_rejected_" + std::to_string(::getpid()) + ".onnx";
  write_file_atomically(path,
                        onnx_model(onnx_graph({node}, {}, values, tensors)) +
                            bytes_field(8, bytes_field(1, "com.microsoft") + number_field(2, 1)));
  std::string said;
  try {
    Session session(path, SessionOptions{});
    session.run({});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModel) << error.message();
    said = error.message();
  }
  std::filesystem::remove(path);
  EXPECT_EQ(said.find('\n'), std::string::npos);
  return said;
}

constexpr int64_t kHuge = int64_t{1} << 62;

void expect(const std::string& said, const std::string& wanted) {
  EXPECT_NE(said.find(wanted), std::string::npos) << said;
}

TEST(ContribErrors, GatedDeltaNet) {
  const std::pair<std::string, Dims> q{"q", {6, 2, 4}}, k{"k", {6, 2, 4}}, v{"v", {6, 4, 3}},
      none{"", {}}, decay{"d", {6, 4}}, beta{"b", {6, 4}}, state{"s", {2, 4, 3, 4}};
  const auto net = [&](const std::vector<std::pair<std::string, Dims>>& inputs,
                       const std::vector<std::string>& attributes = {}) {
    return rejection("GatedDeltaNet", inputs, attributes);
  };
  expect(net({q, k, v, none, none, beta, state}), "needs decay");
  expect(net({q, k, v, none, decay, beta}), "must tell the batch");
  expect(net({q, k, v, {"i", {3}}, decay, beta}), "does not increase from 0 to 6");
  expect(net({q, k, v, none, decay, beta, {"s", {2, 4, 4, 3}}}), "initial_state is");
  expect(net({q, k, {"v", {6, 3, 3}}, none, decay, beta, state}), "not a multiple of 2 key heads");
  expect(net({{"q", {6, 27}}, none, none, none, decay, beta, state}), "rows of 27");
  expect(net({{"q", {6, 28}}, none, none, none, decay, beta, {"s", {0, 1 << 30, 1 << 30, 4}}}),
         "rows of 28");
  expect(net({q, k, v, none, decay, beta, state}, {int_attribute("state_update_capacity", kHuge)}),
         "state_update_capacity is");
  expect(net({q, k, v, none, decay, beta, state}, {string_attribute("update_rule", "other")}),
         "unknown update_rule");
}

TEST(ContribErrors, CausalConvolutions) {
  const std::pair<std::string, Dims> x{"x", {6, 3}}, w{"w", {3, 1, 3}}, none{"", {}},
      state{"s", {1, 3, 2}}, ends{"i", {2}};
  const auto conv = [&](const std::vector<std::pair<std::string, Dims>>& inputs,
                        const std::vector<std::string>& attributes = {}) {
    return rejection("VarlenCausalConvWithState", inputs, attributes, {"y", "next"});
  };
  expect(conv({x, w, ends, none, state}), "does not increase from 0 to 6");
  expect(conv({x, {"w", {3, 1, 0}}, ends, none, state}), "the weight is");
  expect(conv({{"x", {6, 0}}, {"w", {0, 1, kHuge}}, ends, none, {"s", {1, 0, 2}}}), "no channels");
  expect(conv({x, w, ends, none, state}, {int_attribute("dilation", kHuge)}), "dilation is");
  expect(conv({x, w, ends, none}), "input 4 is missing");
  expect(rejection("CausalConvWithState", {{"x", {1, 3, 6}}, w}, {int_attribute("dilation", kHuge)},
                   {"y", "next"}),
         "dilation is");
  expect(rejection("CausalConvWithState", {{"x", {1, 3, 6}}, w}, {int_attribute("state_window", 2)},
                   {"y", "next"}),
         "'state_window' is not supported");
}

TEST(ContribErrors, GroupRouter) {
  const std::pair<std::string, Dims> x{"x", {4, 8}}, b{"b", {8}};
  const auto router = [&](const std::vector<std::pair<std::string, Dims>>& inputs,
                          const std::vector<std::string>& attributes) {
    return rejection("MoEGroupRouter", inputs, attributes);
  };
  expect(router({x, b}, {}), "top_k is 0");
  expect(router({x, b}, {int_attribute("top_k", kHuge)}), "of 8 experts");
  expect(router({x, b}, {int_attribute("top_k", 1), int_attribute("n_group", kHuge)}), "n_group");
  expect(router({x, {"b", {7}}}, {int_attribute("top_k", 1)}), "expert_bias is");
  expect(rejection("MoEGroupRouter", {x, b}, {int_attribute("top_k", 1)}, {"", "s"}),
         "must be given together");
}

TEST(ContribErrors, PackedTables) {
  const auto gather = [&](const Dims& table, int64_t type, int64_t columns) {
    return rejection("GatherPacked", {{"u", table}, {"l", {2}}},
                     {int_attribute("packed_type", type), int_attribute("K", columns),
                      int_attribute("output_dtype", 1)});
  };
  EXPECT_EQ(gather({3, 18}, 2, 32), "");
  expect(gather({3, 18}, 4, 32), "packed_type 4 is not supported");
  expect(gather({3, 18}, 2, 33), "not a multiple of the block size 32");
  expect(gather({3, 18}, 2, -32), "not a multiple of the block size 32");
  expect(gather({3, 18}, 2, kHuge), "does not have 18 bytes");
  expect(gather({0, 18}, 2, 32), "the table has no rows");
  expect(gather({0, int64_t{1} << 50}, 1, int64_t{1} << 49), "half of the memory");
  expect(gather({54}, 2, 32), "the table is");
}

}  // namespace
}  // namespace paddle::onnx
