// Tensors of more than 2^31 elements: 2.2 billion bytes, whose values tell the place. Every result
// is checked around place 2^31 and at its end, and, where that is cheap, as a whole. At most three
// such tensors are alive at once; without 10 GB of free memory the tests are skipped.

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

#include "base/parallel.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

constexpr int64_t kRows = 2200, kColumns = 1'000'003;
constexpr int64_t kSize = kRows * kColumns;
static_assert(kSize > (int64_t{1} << 31));

uint8_t value_at(int64_t place) {
  return static_cast<uint8_t>((static_cast<uint64_t>(place) * 0x9E3779B97F4A7C15u) >> 56);
}

int64_t free_gibibytes() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  while (info >> word)
    if (word == "MemAvailable:") {
      int64_t kibibytes = 0;
      info >> kibibytes;
      return kibibytes >> 20;
    }
  return std::numeric_limits<int64_t>::max();
}

/// Places to look at in a result of `size` elements.
std::vector<int64_t> places(int64_t size) {
  constexpr int64_t kBoundary = int64_t{1} << 31;
  std::vector<int64_t> out;
  for (const int64_t at : {int64_t{0}, int64_t{1}, kBoundary - 1, kBoundary, kBoundary + 1,
                           kBoundary + 12345, size / 2, size - 2, size - 1})
    if (at >= 0 && at < size) out.push_back(at);
  return out;
}

class LargeTensors : public testing::Test {
 protected:
  void SetUp() override {
    if (free_gibibytes() < 10) GTEST_SKIP() << "less than 10 GB of memory are free";
    values_ = Array::empty(DType::kU8, {kRows, kColumns});
    auto* const data = values_.data<uint8_t>();
    parallel_for(kSize, 1 << 20, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = value_at(i);
    });
    for (int64_t i = 0; i < kSize; ++i) total_ += data[i];
  }

  /// The result has `expected(place)` at the places that are looked at.
  template <class T = uint8_t, class F>
  static void expect_values(const Tensor& result, F expected) {
    const Array a = result.array().contiguous();
    for (const int64_t at : places(a.size()))
      EXPECT_EQ(a.data<T>()[at], expected(at)) << "place " << at;
  }

  Array values_;
  int64_t total_ = 0;

 private:
  runtime::EagerExecutor eager_;
  InterpreterScope scope_{eager_};
};

TEST_F(LargeTensors, Elementwise) {
  const Tensor x(values_);
  expect_values(x + Tensor(Array::scalar(uint8_t{7})),
                [](int64_t at) { return static_cast<uint8_t>(value_at(at) + 7); });
  expect_values(ops::bitwise_xor(x, x), [](int64_t) { return 0; });
  expect_values<bool>(ops::greater_than(x, Tensor(Array::scalar(uint8_t{127}))),
                      [](int64_t at) { return value_at(at) > 127; });
}

TEST_F(LargeTensors, BroadcastRowsAndColumns) {
  const Tensor row(Array::from<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {10}));
  const Tensor wide = ops::tile(row, {Dim(kColumns / 10 + 1)});
  const Tensor cut = ops::strided_slice(wide, {0}, {Dim(0)}, {Dim(kColumns)}, {1});
  expect_values(Tensor(values_) + cut, [](int64_t at) {
    return static_cast<uint8_t>(value_at(at) + at % kColumns % 10 + 1);
  });
}

TEST_F(LargeTensors, Reductions) {
  const Tensor x(values_);
  EXPECT_EQ(ops::sum(x, std::nullopt, DType::kI64).array().number(0), static_cast<double>(total_));
  EXPECT_EQ(ops::max(x).array().number(0), 255);
  // A unique largest element after place 2^31.
  auto* const data = values_.data<uint8_t>();
  constexpr int64_t kPlace = (int64_t{1} << 31) + 4321;
  for (int64_t i = 0; i < kSize; ++i) data[i] = std::min<uint8_t>(data[i], 254);
  data[kPlace] = 255;
  EXPECT_EQ(ops::argmax(x).array().number(0), static_cast<double>(kPlace));
  const Tensor rows = ops::max(x, std::vector<int64_t>{1});
  EXPECT_EQ(rows.array().number(kPlace / kColumns), 255);
}

TEST_F(LargeTensors, SlicesAndWrites) {
  const Tensor x(values_);
  const Tensor last =
      ops::strided_slice(x, {0, 1}, {Dim(kRows - 2), Dim(5)}, {Dim(kRows), Dim(kColumns)}, {1, 3});
  const Array a = last.array().contiguous();
  for (int64_t r = 0; r < 2; ++r)
    for (const int64_t c : {int64_t{0}, a.shape[1] - 1})
      EXPECT_EQ(a.data<uint8_t>()[r * a.shape[1] + c],
                value_at((kRows - 2 + r) * kColumns + 5 + 3 * c));
  const Tensor written =
      ops::strided_slice_scatter(x, ops::full({Dim(1), Dim(kColumns)}, AttrValue(9), DType::kU8),
                                 {0}, {Dim(kRows - 1)}, {Dim(kRows)}, {1});
  expect_values(
      written, [](int64_t at) { return at >= (kRows - 1) * kColumns ? uint8_t{9} : value_at(at); });
}

TEST_F(LargeTensors, GathersAndScatters) {
  const Tensor x(values_);
  const Tensor rows(Array::from<int64_t>({kRows - 1, 0, 2148}, {3}));
  const Array picked = ops::index_select(x, rows, 0).array().contiguous();
  for (const int64_t c : {int64_t{0}, kColumns - 1}) {
    EXPECT_EQ(picked.data<uint8_t>()[c], value_at((kRows - 1) * kColumns + c));
    EXPECT_EQ(picked.data<uint8_t>()[2 * kColumns + c], value_at(2148 * kColumns + c));
  }
  const Tensor flat = ops::reshape(x, {Dim(kSize)});
  const Tensor far(Array::from<int64_t>({(int64_t{1} << 31) + 3, kSize - 1, 17}, {3}));
  const Array single = ops::index_select(flat, far, 0).array().contiguous();
  EXPECT_EQ(single.data<uint8_t>()[0], value_at((int64_t{1} << 31) + 3));
  EXPECT_EQ(single.data<uint8_t>()[1], value_at(kSize - 1));
  const Array along = ops::take_along_axis(flat, far, 0).array().contiguous();
  EXPECT_EQ(along.data<uint8_t>()[1], value_at(kSize - 1));
  const Array nth =
      ops::gather_nd(x, Tensor(Array::from<int64_t>({kRows - 1, kColumns - 1}, {1, 2})))
          .array()
          .contiguous();
  EXPECT_EQ(nth.data<uint8_t>()[0], value_at(kSize - 1));
}

TEST_F(LargeTensors, Concatenation) {
  const Tensor x(values_);
  const Tensor few = ops::full({Dim(2), Dim(kColumns)}, AttrValue(3), DType::kU8);
  expect_values(ops::concat({few, x}, 0), [](int64_t at) {
    return at < 2 * kColumns ? uint8_t{3} : value_at(at - 2 * kColumns);
  });
  const Tensors halves = ops::split(ops::reshape(x, {Dim(kSize)}), AttrValue(2), 0);
  expect_values(halves[1], [](int64_t at) { return value_at(at + kSize / 2); });
}

TEST_F(LargeTensors, Transpositions) {
  expect_values(ops::transpose(Tensor(values_), {1, 0}),
                [](int64_t at) { return value_at(at % kRows * kColumns + at / kRows); });
  expect_values(ops::flip(Tensor(values_), {0, 1}),
                [](int64_t at) { return value_at(kSize - 1 - at); });
}

TEST_F(LargeTensors, Compiled) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"},
                                  {DType::kU8, {Dim::symbol("rows"), Dim(kColumns)}});
    const Tensor y = ops::bitwise_xor(x, Tensor(Array::scalar(uint8_t{255})));
    tracer.output({ir::PortKind::kValue, "y"}, y);
    tracer.output({ir::PortKind::kValue, "total"}, ops::sum(y, std::nullopt, DType::kI64));
  }
  runtime::optimize(*function);
  runtime::Executable executable(function);
  const std::vector<Array> results = executable.run({values_});
  expect_values(Tensor(results[0]), [](int64_t at) { return static_cast<uint8_t>(~value_at(at)); });
  EXPECT_EQ(results[1].number(0), static_cast<double>(255 * kSize - total_));
}

}  // namespace
}  // namespace paddle
