// Elementwise fusion: a group computes the same bits as its operations one by one.
// tests/passes/fuse_elementwise*.ir test which groups are formed.

#include <gtest/gtest.h>

#include <cstring>

#include "compiler/passes/passes.h"
#include "runtime/compile.h"
#include "runtime/executable.h"

namespace paddle {
namespace {

ir::Module module_of(const std::string& body, const std::string& inputs) {
  return ir::parse("module 'm' {\n  func 'f'(\n" + inputs + ") {\n" + body + "  }\n}\n",
                   "fuse_elementwise_test.txt");
}

void run_passes(ir::Function& f, bool fusion) { runtime::optimize(f, {.fusion = fusion}); }

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

const char* const kInputs =
    "      %0 : float32[batch, n] 'x',\n"
    "      %1 : float32[n] 'b',\n"
    "      %2 : float32[batch, n] 'g'";

/// A bias, an activation, a value for its gradient, and a branch from the middle of the group.
const char* const kChain =
    "    %3 = constant float32[] [0.5]\n"
    "    %4 = add(%0, %1) : float32[batch, n]\n"
    "    %5 = tanh(%4) : float32[batch, n]\n"
    "    %6 = multiply(%5, %3) : float32[batch, n]\n"
    "    %7 = greater_than(%6, %3) : bool[batch, n]\n"
    "    %8 = where(%7, %6, %2) : float32[batch, n]\n"
    "    %9 = cast(%7) {dtype = float64} : float64[batch, n]\n"
    "    return %8 'y', %5 't', %9 'm'\n";

/// The groups that form where kernels of products compute what follows.
std::string groups_with_products(const std::string& body) {
  ir::Module m = module_of(body,
                           "      %0 : float32[8, 8] 'x',\n"
                           "      %1 : float32[8, 8] 'w'");
  passes::fuse_elementwise(
      *m.functions[0], [](const ir::Operation&) { return true; },
      [](const ir::Operation& o, Around around) {
        return around == Around::kElementwise && o.op->name() == "matmul";
      });
  ir::verify(m);
  std::string out;
  for (const auto& o : m.functions[0]->body.operations) {
    out += str(out.empty() ? "" : " ", o->op->name());
    for (const auto& inner : o->regions)
      for (const auto& member : inner->operations) out += str(":", member->op->name());
  }
  return out;
}

TEST(Fusion, AProductBeginsAGroup) {
  EXPECT_EQ(groups_with_products("    %2 = matmul(%0, %1) : float32[8, 8]\n"
                                 "    %3 = tanh(%2) : float32[8, 8]\n"
                                 "    %4 = add(%3, %0) : float32[8, 8]\n"
                                 "    %5 = sum(%4) {axis = [0]} : float32[8]\n"
                                 "    return %2 'a', %4 'b', %5 'c'\n"),
            "fused:matmul:tanh:add:sum");
}

TEST(Fusion, AProductAndSumsOfRowsAreApart) {
  EXPECT_EQ(groups_with_products("    %2 = matmul(%0, %1) : float32[8, 8]\n"
                                 "    %3 = tanh(%2) : float32[8, 8]\n"
                                 "    %4 = sum(%3) {axis = [1]} : float32[8]\n"
                                 "    return %4 'a'\n"),
            "fused:matmul:tanh sum");
}

TEST(Fusion, AProductJoinsNoGroupThatItNeeds) {
  // The first exp and the add are one group, whose value the product reads.
  EXPECT_EQ(groups_with_products("    %2 = exp(%0) : float32[8, 8]\n"
                                 "    %3 = matmul(%2, %1) : float32[8, 8]\n"
                                 "    %4 = add(%2, %3) : float32[8, 8]\n"
                                 "    return %4 'a'\n"),
            "exp fused:matmul:add");
}

TEST(Fusion, GroupsDoNotDependOnEachOther) {
  // %4 and %9 could be one group and %7 and %8 another, but not both: each would need the other.
  ir::Module m = module_of(
      "    %3 = constant float32[] [2.0]\n"
      "    %4 = exp(%0) : float32[batch, n]\n"
      "    %5 = sum(%4) : float32[]\n"
      "    %6 = sum(%2) : float32[]\n"
      "    %10 = sqrt(%6) : float32[]\n"
      "    %7 = divide(%5, %10) : float32[]\n"
      "    %8 = divide(%3, %10) : float32[]\n"
      "    %11 = expand(%8) {shape = [batch, n]} : float32[batch, n]\n"
      "    %9 = multiply(%4, %11) : float32[batch, n]\n"
      "    return %9 'y', %7 'z'\n",
      kInputs);
  run_passes(*m.functions[0], true);
  ir::verify(m);
  EXPECT_GE(count(ir::print(m), "= fused("), 1u) << ir::print(m);
}

Array values(const Dims& shape, DType dtype, double scale) {
  Array a = Array::zeros(DType::kF64, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<double>()[i] = scale * (static_cast<double>(i * 37 % 101) / 50.0 - 1);
  return a.cast(dtype);
}

TEST(Fusion, ComputesTheSameBits) {
  for (const char* dtype : {"float32", "float64"})
    for (const int64_t batch : {0, 1, 3, 64, 513})
      for (const int64_t n : {1, 7, 64, 100, 1025}) {
        const auto typed = [&](std::string text) {
          for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos; ++at)
            text.replace(at, 7, dtype);
          return text;
        };
        ir::Module fused = module_of(typed(kChain), typed(kInputs));
        ir::Module plain = module_of(typed(kChain), typed(kInputs));
        run_passes(*fused.functions[0], true);
        run_passes(*plain.functions[0], false);
        ASSERT_EQ(count(ir::print(fused), "= fused("), 1u);
        const DType type = std::string(dtype) == "float32" ? DType::kF32 : DType::kF64;
        const std::vector<Array> inputs = {values({batch, n}, type, 1), values({n}, type, 0.5),
                                           values({batch, n}, type, 3)};
        runtime::ExecutableOptions options{1, {.check_memory = true, .profile = nullptr}};
        runtime::Executable a(fused.functions[0], options), b(plain.functions[0], options);
        const std::vector<Array> ya = a.run(inputs), yb = b.run(inputs);
        ASSERT_EQ(ya.size(), yb.size());
        for (size_t i = 0; i < ya.size(); ++i) {
          const Array p = ya[i].contiguous(), q = yb[i].contiguous();
          ASSERT_EQ(p.shape, q.shape);
          EXPECT_EQ(
              std::memcmp(p.raw(), q.raw(), static_cast<size_t>(storage_bytes(p.dtype, p.size()))),
              0)
              << dtype << " [" << batch << ", " << n << "] result " << i;
        }
      }
}

}  // namespace
}  // namespace paddle
