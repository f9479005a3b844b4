// Operands and results at addresses that 16-byte accesses do not allow, on the stand-in for an
// NVIDIA GPU: kernels of single elements compute the same bits.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/core/kernel.h"
#include "support/cuda/fake_driver.h"
#include "support/cuda/stand_in.h"
#include "tensor/device_functions.h"

namespace paddle {
namespace {

class CudaAlignment : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = cuda_stand_in();
    if (!found) GTEST_SKIP() << "no stand-ins";
    device = *found;
    device_properties(device);  // opens the library
    void* const library =
        dlopen((cuda_stand_ins() + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    launches =
        reinterpret_cast<decltype(&fake_cuda_launches)>(dlsym(library, "fake_cuda_launches"));
    ASSERT_NE(launches, nullptr);
    ASSERT_EQ(device_api(device).create_stream(0, &stream), 0);
  }
  void TearDown() override {
    if (!stream) return;
    EXPECT_EQ(device_api(device).destroy_stream(stream), 0);
  }

  /// Runs an operation whose operand or result `moved`, counted from the operands on, lies one
  /// element after an aligned address; -1: none does. Returns the bytes of the results.
  std::vector<std::vector<std::byte>> run(const char* name, const std::vector<Layout>& operands,
                                          const std::vector<Layout>& results, int moved) const {
    const paddle_device_api& api = device_api(device);
    const Op& op = get_op(name);
    const Attrs attrs{op.defaults, {}};
    const auto kernel = prepare_kernel({op, attrs, operands, results, {.device = device}});
    if (!kernel) {
      ADD_FAILURE() << name << " has no kernel";
      return {};
    }
    std::vector<void*> blocks, pointers;
    std::vector<std::vector<std::byte>> given;  // until they are copied
    for (const auto* const layouts : {&operands, &results})
      for (const Layout& layout : *layouts) {
        if (!layout.present) {
          pointers.push_back(nullptr);
          continue;
        }
        const auto item = static_cast<size_t>(item_size(layout.dtype));
        const size_t bytes = static_cast<size_t>(layout.size()) * item;
        EXPECT_EQ(api.allocate(0, bytes + 64, &blocks.emplace_back()), 0);
        const bool is_moved = static_cast<int>(pointers.size()) == moved;
        pointers.push_back(static_cast<std::byte*>(blocks.back()) + (is_moved ? item : 0));
        // Small numbers as floats of any width.
        auto& values = given.emplace_back(bytes);
        for (size_t i = 0; i < bytes; i += item) {
          values[i + item - 1] = std::byte{0x3f};
          values[i + item - 2] = static_cast<std::byte>(i / item * 7);
        }
        EXPECT_EQ(api.copy(stream, pointers.back(), values.data(), bytes, PADDLE_COPY_TO_DEVICE),
                  0);
      }
    void* scratch = nullptr;
    EXPECT_EQ(api.allocate(0, kernel->scratch_bytes() + 1, &scratch), 0);
    blocks.push_back(scratch);
    kernel->run({.scratch = static_cast<std::byte*>(scratch), .stream = stream}, pointers.data(),
                pointers.data() + operands.size());
    std::vector<std::vector<std::byte>> out;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].present) continue;
      auto& bytes =
          out.emplace_back(static_cast<size_t>(results[i].size() * item_size(results[i].dtype)));
      EXPECT_EQ(api.copy(stream, bytes.data(), pointers[operands.size() + i], bytes.size(),
                         PADDLE_COPY_TO_HOST),
                0);
    }
    EXPECT_EQ(api.synchronize_stream(stream), 0);
    for (void* const block : blocks) EXPECT_EQ(api.release(0, block), 0);
    return out;
  }

  /// Compares each operand and result off its alignment with none; `wide` and `narrow` name the
  /// kernels.
  void expect_same(const char* op, const std::vector<Layout>& operands,
                   const std::vector<Layout>& results, const char* wide, const char* narrow) {
    SCOPED_TRACE(op);
    uint64_t before = launches(wide);
    const auto expected = run(op, operands, results, -1);
    EXPECT_EQ(launches(wide), before + 1);
    for (int moved = 0; moved < static_cast<int>(operands.size() + results.size()); ++moved) {
      const auto at = static_cast<size_t>(moved);
      const Layout& layout = at < operands.size() ? operands[at] : results[at - operands.size()];
      if (!layout.present || layout.size() == 1) continue;
      before = launches(narrow);
      EXPECT_EQ(run(op, operands, results, moved), expected) << moved;
      EXPECT_EQ(launches(narrow), before + 1) << moved;
    }
  }

  Device device;
  paddle_stream stream = nullptr;
  decltype(&fake_cuda_launches) launches = nullptr;
};

TEST_F(CudaAlignment, ElementsOfGroupsAreReadOneByOne) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI8}) {
    SCOPED_TRACE(text(type));
    const Layout x = Layout::contiguous(type, {3, 64});
    expect_same("maximum", {x, x}, {x}, "group_wide", "group_1");
    expect_same("cast", {x}, {Layout::contiguous(DType::kF32, {3, 64})}, "group_wide", "group_1");
  }
}

TEST_F(CudaAlignment, ElementsOfSumsAreReadOneByOne) {
  const Layout x = Layout::contiguous(DType::kBF16, {512});
  expect_same("sum", {x}, {Layout::contiguous(DType::kBF16, {})}, "group_wide", "group_1");
}

TEST_F(CudaAlignment, ElementsOfUpdatesAreReadOneByOne) {
  const Layout x = Layout::contiguous(DType::kF32, {64}),
               scalar = Layout::contiguous(DType::kF32, {});
  Layout absent;
  absent.present = false;
  expect_same("sgd_update", {x, x, absent, scalar, absent, absent}, {x, absent}, "update_wide",
              "update_1");
}

}  // namespace
}  // namespace paddle
