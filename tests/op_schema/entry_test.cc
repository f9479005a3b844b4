// The schema of plug-ins: what is read, and what is rejected with its place.

#include "op_schema/entry.h"

#include <gtest/gtest.h>

namespace paddle::op_schema {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_plugin_entries(text, "some.yaml", "operations");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

constexpr const char* kTwice = R"(
operations:
  twice:
    signature: (x:T, times:int=2) -> out
    doc: x times a number.
    body: x * times
    dtypes: {x: float}
    traits: [elementwise, accesses_files]
)";

TEST(PluginEntries, AreRead) {
  const auto entries = read_plugin_entries(kTwice, "some.yaml", "operations");
  ASSERT_EQ(entries.size(), 1u);
  const Entry& e = entries[0];
  EXPECT_EQ(e.name, "twice");
  EXPECT_EQ(e.body, "x * times");
  EXPECT_EQ(e.place.line, 3);
  ASSERT_EQ(e.params.size(), 2u);
  EXPECT_TRUE(e.params[0].is_operand && e.params[0].promotes);
  EXPECT_EQ(e.params[0].dtypes, std::vector<std::string>{"float"});
  EXPECT_EQ(e.params[1].default_value, "2");
  EXPECT_TRUE(e.has_trait("accesses_files"));
  EXPECT_FALSE(e.has_trait("accesses_network"));
}

TEST(PluginEntries, AreRejectedWithTheirPlace) {
  const std::string head = "operations:\n  twice:\n    signature: (x:T) -> out\n";
  EXPECT_EQ(error_of(head + "    doc: Two.\n    kernel: true\n"),
            "some.yaml:2: twice: unknown key 'kernel'");
  EXPECT_EQ(error_of(head + "    body: x\n"), "some.yaml:2: twice: has no doc");
  EXPECT_EQ(error_of("operations:\n  twice: 3\n"),
            "some.yaml:2: twice: expected keys such as 'signature'");
  EXPECT_EQ(error_of("operations: [1]\n"), "some.yaml:1: expected operations by name");
  EXPECT_EQ(error_of(head + "    doc: Two.\n    vjp: none\n"),
            "some.yaml:2: twice: vjp: 'none' needs a reason: 'none: reason'");
  EXPECT_EQ(error_of(head + "    doc: Two.\n    vjp: [g, g]\n"),
            "some.yaml:2: twice: vjp: has 2 gradients for 1 operands");
  EXPECT_EQ(error_of(head + "    doc: Two.\n    traits: [fast]\n"),
            "some.yaml:2: twice: unknown trait 'fast'");
  EXPECT_EQ(error_of("operations:\n  twice:\n    signature: (x:T)\n    doc: Two.\n"),
            "some.yaml:2: twice: signature must read '(…) -> …'");
  EXPECT_NE(error_of("operations:\n  twice: [\n").find("some.yaml:3: "), std::string::npos);
}

}  // namespace
}  // namespace paddle::op_schema
