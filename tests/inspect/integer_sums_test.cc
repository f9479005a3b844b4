// The types of sums of integers, and that they hold the sums: NumPy's results for the same arrays.

#include <gtest/gtest.h>

#include "inspect/op_call.h"
#include "inspect/run_op.h"

namespace paddle::inspect {
namespace {

struct Case {
  const char* op;
  std::vector<std::string> words;
  DType dtype;
  std::vector<int64_t> values;
};

TEST(IntegerSums, HoldWhatTheirTypePromises) {
  const std::vector<Case> cases = {
      {"sum", {"x=u8(200,200,100)"}, DType::kI64, {500}},
      {"sum", {"x=i8(100,100,-1)"}, DType::kI64, {199}},
      {"sum", {"x=i16(30000,30000)"}, DType::kI64, {60000}},
      {"sum", {"x=i32(2000000000,2000000000)"}, DType::kI64, {4000000000}},
      {"sum", {"x=i64(4000000000,1)"}, DType::kI64, {4000000001}},
      {"sum", {"x=u8[2,2](200,100,200,100)", "axis=0", "keepdim=true"}, DType::kI64, {400, 200}},
      {"sum", {"x=u8(200,200,100)", "dtype=uint8"}, DType::kU8, {500 - 256}},
      {"nansum", {"x=u8(200,200,100)"}, DType::kI64, {500}},
      {"count_nonzero", {"x=u8(200,0,100)"}, DType::kI64, {2}},
      {"cumsum", {"x=u8(200,200,100)"}, DType::kI64, {200, 400, 500}},
      {"cumsum", {"x=i16(30000,30000)", "axis=0"}, DType::kI64, {30000, 60000}},
      // Products and traces keep the type of integers, as their pages say, unless one is given.
      {"prod", {"x=u8(200,2,3)", "dtype=int64"}, DType::kI64, {1200}},
      {"prod", {"x=u8(20,2,3)"}, DType::kU8, {120}},
      {"prod", {"x=i32(100000,100000)", "dtype=int64"}, DType::kI64, {10000000000}},
      {"cumprod", {"x=u8(200,2,3)", "dtype=int64"}, DType::kI64, {200, 400, 1200}},
      {"trace", {"x=u8[2,2](100,0,0,100)"}, DType::kU8, {200}},
  };
  for (const Case& c : cases)
    for (const Mode mode : {Mode::kEager, Mode::kCompiled}) {
      const auto results = run_named(parse_call(get_op(c.op), c.words), mode, false);
      const Array found = results[0].second;
      SCOPED_TRACE(str(c.op, " ", c.words[0], " ", text(mode)));
      EXPECT_EQ(found.dtype, c.dtype) << text(found.dtype);
      ASSERT_EQ(found.size(), static_cast<int64_t>(c.values.size()));
      for (size_t i = 0; i < c.values.size(); ++i)
        EXPECT_EQ(found.integer(static_cast<int64_t>(i)), c.values[i]) << i;
    }
}

TEST(IntegerSums, MeansAreFloats) {
  for (const Mode mode : {Mode::kEager, Mode::kCompiled}) {
    const auto results = run_named(parse_call(get_op("mean"), {"x=u8(200,200,101)"}), mode, false);
    EXPECT_EQ(results[0].second.dtype, DType::kF32);
    EXPECT_FLOAT_EQ(static_cast<float>(results[0].second.number(0)), 167);
  }
}

}  // namespace
}  // namespace paddle::inspect
