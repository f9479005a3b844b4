// Conversions in kernels: which casts join the operation whose kernel can compute them.

#include <gtest/gtest.h>

#include "compiler/passes/passes.h"

namespace paddle {
namespace {

ir::Module parsed(const std::string& inputs, const std::string& body) {
  return ir::parse("module 'm' {\n  func 'f'(\n" + inputs + ") {\n" + body + "  }\n}\n",
                   "fuse_conversions_test.txt");
}

/// The operations of the function and, in brackets, of its groups.
std::string operations(const ir::Region& region) {
  std::string out;
  for (const auto& o : region.operations) {
    out += str(out.empty() ? "" : " ", o->op->name());
    for (const auto& inner : o->regions) out += "[" + operations(*inner) + "]";
  }
  return out;
}

std::string fused(ir::Module& m, Around around) {
  ir::Function& f = *m.functions[0];
  passes::fuse_conversions(f, [&](const ir::Operation& o, Around asked) {
    return asked == around && o.op->name() == "softmax";
  });
  ir::verify(m);
  return operations(f.body);
}

const char* const kInput = "      %0 : bfloat16[4, 6] 'x'";

TEST(FuseConversions, CastsOnBothSidesJoin) {
  ir::Module m = parsed(kInput,
                        "    %1 = cast(%0) {dtype = float32} : float32[4, 6]\n"
                        "    %2 = softmax(%1) : float32[4, 6]\n"
                        "    %3 = cast(%2) {dtype = bfloat16} : bfloat16[4, 6]\n"
                        "    return %3 'y'\n");
  EXPECT_EQ(fused(m, Around::kCasts), "fused[cast softmax cast]");
}

TEST(FuseConversions, AValueThatOthersReadIsStoredAsItIs) {
  ir::Module m = parsed(kInput,
                        "    %1 = cast(%0) {dtype = float32} : float32[4, 6]\n"
                        "    %2 = softmax(%1) : float32[4, 6]\n"
                        "    %3 = cast(%2) {dtype = bfloat16} : bfloat16[4, 6]\n"
                        "    %4 = exp(%1) : float32[4, 6]\n"
                        "    return %3 'y', %2 'z', %4 'e'\n");
  EXPECT_EQ(fused(m, Around::kCasts), "cast fused[cast softmax] cast exp");
}

TEST(FuseConversions, OtherCastsStay) {
  ir::Module m = parsed("      %0 : float64[4, 6] 'x'",
                        "    %1 = cast(%0) {dtype = float32} : float32[4, 6]\n"
                        "    %2 = softmax(%1) : float32[4, 6]\n"
                        "    %3 = cast(%2) {dtype = int64} : int64[4, 6]\n"
                        "    return %3 'y'\n");
  EXPECT_EQ(fused(m, Around::kCasts), "cast softmax cast");
}

TEST(FuseConversions, AnOperationWithoutSuchAKernelStays) {
  ir::Module m = parsed(kInput,
                        "    %1 = cast(%0) {dtype = float32} : float32[4, 6]\n"
                        "    %2 = softmax(%1) : float32[4, 6]\n"
                        "    return %2 'y'\n");
  EXPECT_EQ(fused(m, Around::kConcat), "cast softmax");
}

}  // namespace
}  // namespace paddle
