// Reductions in groups: what the pass makes of a function's text, and that a group that ends with
// reductions computes the bits of its operations one by one, block by block and as machine code.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/parallel.h"
#include "runtime/compile.h"
#include "runtime/executable.h"

namespace paddle {
namespace {

ir::Module module_of(const std::string& inputs, const std::string& body) {
  return ir::parse("module 'm' {\n  func 'f'(\n" + inputs + ") {\n" + body + "  }\n}\n",
                   "fuse_reduce_test.txt");
}

ir::Module passed(const std::string& inputs, const std::string& body, bool fusion,
                  bool exact = false) {
  ir::Module m = module_of(inputs, body);
  runtime::optimize(*m.functions[0], {.fusion = fusion, .exact = exact});
  ir::verify(m);
  return m;
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

const char* const kMatrices =
    "      %0 : float32[rows, n] 'x',\n"
    "      %1 : float32[n] 'b',\n"
    "      %2 : float32[rows, n] 'g'";

// ---- the pass

TEST(FusedReduction, EndsAGroup) {
  const ir::Module m = passed(kMatrices,
                              "    %3 = multiply(%0, %2) : float32[rows, n]\n"
                              "    %4 = sum(%3) {axis = [1]} : float32[rows]\n"
                              "    return %4 'y'\n",
                              true);
  EXPECT_EQ(
      ir::print(m),
      "module 'm' {\n"
      "  func 'f'(\n"
      "      %0 : float32[rows, n] 'x', \n"
      "      %1 : float32[n] 'b', \n"
      "      %2 : float32[rows, n] 'g') {\n"
      "    %4 = fused([%0, %2]) : float32[rows] (%5 : float32[rows, n], %6 : float32[rows, n]) {\n"
      "      %3 = multiply(%5, %6) : float32[rows, n]\n"
      "      %7 = sum(%3) {axis = [1]} : float32[rows]\n"
      "      yield %7\n"
      "    }\n"
      "    return %4 'y'\n"
      "  }\n"
      "}\n");
  const ir::Module again = ir::parse(ir::print(m), "again.txt");
  ir::verify(again);
  EXPECT_EQ(ir::print(ir::parse(ir::print(again), "third.txt")), ir::print(again));
}

TEST(FusedReduction, SharesTheGroupWithResultsAndOthersOverTheSameAxes) {
  const std::string text =
      ir::print(passed(kMatrices,
                       "    %3 = multiply(%0, %2) : float32[rows, n]\n"
                       "    %4 = add(%3, %1) : float32[rows, n]\n"
                       "    %5 = sum(%3) {axis = [0], keepdim = true} : float32[1, n]\n"
                       "    %6 = max(%4) {axis = [-2]} : float32[n]\n"
                       "    %7 = mean(%4) {axis = [1]} : float32[rows]\n"
                       "    return %4 'y', %5 's', %6 'm', %7 'other'\n",
                       true));
  EXPECT_EQ(count(text, "= fused("), 1u) << text;
  EXPECT_EQ(count(text, "yield %"), 1u) << text;
  EXPECT_EQ(count(text, "    %7 = mean("), 1u) << text;  // other axes
}

TEST(FusedReduction, IsNotReadInItsOwnGroup) {
  const std::string text =
      ir::print(passed(kMatrices,
                       "    %3 = multiply(%0, %2) : float32[rows, n]\n"
                       "    %4 = sum(%3) {axis = [1], keepdim = true} : float32[rows, 1]\n"
                       "    %5 = divide(%3, %4) : float32[rows, n]\n"
                       "    %6 = exp(%5) : float32[rows, n]\n"
                       "    %7 = sum(%6) : float32[]\n"
                       "    return %6 'y', %7 'z'\n",
                       true));
  EXPECT_EQ(count(text, "= fused("), 2u) << text;
}

TEST(FusedReduction, KeepsNothingFromBecomingOneGroup) {
  // The group of %3 and %5 is made first; that the maximum comes between them in the text changes
  // nothing.
  const std::string text = ir::print(passed(kMatrices,
                                            "    %3 = multiply(%0, %2) : float32[rows, n]\n"
                                            "    %4 = max(%3) : float32[]\n"
                                            "    %5 = exp(%3) : float32[rows, n]\n"
                                            "    return %5 'y', %4 'z'\n",
                                            true));
  EXPECT_EQ(count(text, "= fused("), 1u) << text;
  EXPECT_EQ(count(text, "    %4 = max("), 0u) << text;
}

TEST(FusedReduction, IsLeftOutsideWhereItCannotBeFolded) {
  // Nothing computes what is reduced; integers; logsumexp; fusion is off; exact and 16 bits.
  const std::string sum = "    %3 = sum(%0) : float32[]\n    return %3 'y'\n";
  EXPECT_EQ(count(ir::print(passed(kMatrices, sum, true)), "fused("), 0u);
  EXPECT_EQ(count(ir::print(passed(kMatrices,
                                   "    %3 = less_than(%0, %2) : bool[rows, n]\n"
                                   "    %4 = sum(%3) : int64[]\n"
                                   "    return %4 'y'\n",
                                   true)),
                  "fused("),
            0u);
  const std::string product = "    %3 = multiply(%0, %2) : float32[rows, n]\n";
  EXPECT_EQ(count(ir::print(passed(kMatrices,
                                   product + "    %4 = logsumexp(%3) : float32[]\n"
                                             "    return %4 'y'\n",
                                   true)),
                  "fused("),
            0u);
  const std::string both = product + "    %4 = sum(%3) : float32[]\n    return %4 'y'\n";
  EXPECT_EQ(count(ir::print(passed(kMatrices, both, false)), "fused("), 0u);
  EXPECT_EQ(count(ir::print(passed(kMatrices, both, true, true)), "fused("), 1u);
  const auto in_16_bits = [](std::string text) {
    for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos; ++at)
      text.replace(at, 7, "bfloat16");
    return text;
  };
  EXPECT_EQ(count(ir::print(passed(in_16_bits(kMatrices), in_16_bits(both), true)), "fused("), 1u);
  EXPECT_EQ(count(ir::print(passed(in_16_bits(kMatrices), in_16_bits(both), true, true)), "fused("),
            0u);
}

// ---- the numbers

/// Mostly plain numbers; NaN and both infinities here and there where `special` is above 0.
Array values(const Dims& shape, DType dtype, double scale, int64_t special = 0) {
  Array a = Array::zeros(DType::kF64, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<double>()[i] = scale * (static_cast<double>(i * 7919 % 10007) / 5000.0 - 1);
  if (special > 0) {
    const double kinds[] = {std::nan(""), INFINITY, -INFINITY};
    for (int64_t i = special / 2, k = 0; i < a.size(); i += special, ++k)
      a.data<double>()[i] = kinds[k % 3];
  }
  return a.cast(dtype);
}

/// "" if both are the same bit for bit, any NaN being one.
std::string difference(const Array& x, const Array& y) {
  const Array a = x.contiguous(), b = y.contiguous();
  if (a.shape != b.shape || a.dtype != b.dtype) return "another type";
  const int64_t item = item_size(a.dtype);
  for (int64_t i = 0; i < a.size(); ++i) {
    const auto* const p = static_cast<const std::byte*>(a.raw()) + i * item;
    const auto* const q = static_cast<const std::byte*>(b.raw()) + i * item;
    if (std::memcmp(p, q, static_cast<size_t>(item)) == 0) continue;
    if (std::isnan(a.number(i)) && std::isnan(b.number(i))) continue;
    return str("element ", i, " of ", a.size(), ": ", a.number(i), " against ", b.number(i));
  }
  return {};
}

/// Copies, which the next run does not change.
std::vector<Array> kept(const std::vector<Array>& arrays) {
  std::vector<Array> out;
  for (const Array& array : arrays) {
    const Array from = array.contiguous();
    Array& to = out.emplace_back(Array::zeros(from.dtype, from.shape));
    if (from.size() > 0)
      std::memcpy(to.raw(), from.raw(), static_cast<size_t>(storage_bytes(to.dtype, to.size())));
  }
  return out;
}

struct Shape {
  int64_t rows, columns, n;
};

/// y = |x * g + b|, with reductions of it and of what it is made of.
std::string body(const std::string& axis, const std::string& result, const char* scope) {
  const std::string full = "float32[rows, columns, n]", to = " {axis = " + axis + "} : " + result;
  return "    %3 = multiply(%0, %2) : " + full + "\n    %4 = add(%3, %1) : " + full +
         "\n    %5 = abs(%4) : " + full + "\n    %6 = sum(%4)" + to + "\n    %7 = max(%5)" + to +
         "\n    %8 = min(%3)" + to + "\n    %9 = mean(%5)" + to + "\n    return %6 's', %7 'm', " +
         "%8 'l', %9 'a'" + scope + "\n";
}

const char* const kCube =
    "      %0 : float32[rows, columns, n] 'x',\n"
    "      %1 : float32[n] 'b',\n"
    "      %2 : float32[rows, columns, n] 'g'";

std::string typed(std::string text, const std::string& dtype) {
  for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos; at += dtype.size())
    text.replace(at, 7, dtype);
  return text;
}

struct Axes {
  const char *axis, *result;
};
const Axes kAxes[] = {{"none", "float32[]"},         {"[2]", "float32[rows, columns]"},
                      {"[1, 2]", "float32[rows]"},   {"[0]", "float32[columns, n]"},
                      {"[0, 1]", "float32[n]"},      {"[1]", "float32[rows, n]"},
                      {"[0, 2]", "float32[columns]"}};

TEST(FusedReduction, ComputesTheBitsOfTheOperationsOneByOne) {
  const std::vector<Shape> shapes = {{1, 1, 1},    {2, 3, 5},     {7, 1, 33},   {64, 3, 100},
                                     {3, 5, 1025}, {1, 90, 2100}, {300, 40, 7}, {5, 1, 4200},
                                     {40, 60, 64}, {1, 1, 70001}, {33, 2, 784}};
  const int threads = thread_count();
  for (const char* dtype : {"float32", "float64"})
    for (const Axes& axes : kAxes)
      for (const char* more : {"", ", %4 'y'"})
        for (const bool codegen : {false, true}) {
          const std::string text = body(axes.axis, axes.result, more);
          const ir::Module fused = passed(typed(kCube, dtype), typed(text, dtype), true);
          const ir::Module plain = passed(typed(kCube, dtype), typed(text, dtype), false);
          ASSERT_EQ(count(ir::print(fused), "= fused("), 1u) << ir::print(fused);
          runtime::ExecutableOptions options{
              1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}};
          runtime::Executable a(fused.functions[0], options), b(plain.functions[0], options);
          for (const Shape& s : shapes)
            for (const int64_t special : {0, 131}) {
              const DType type = std::string(dtype) == "float32" ? DType::kF32 : DType::kF64;
              const std::vector<Array> inputs = {values({s.rows, s.columns, s.n}, type, 1, special),
                                                 values({s.n}, type, 0.5),
                                                 values({s.rows, s.columns, s.n}, type, 3)};
              set_thread_count(1);
              const std::vector<Array> one = kept(a.run(inputs)), expected = b.run(inputs);
              set_thread_count(3);
              const std::vector<Array> three = a.run(inputs);
              ASSERT_EQ(one.size(), expected.size());
              for (size_t i = 0; i < one.size(); ++i) {
                EXPECT_EQ(difference(one[i], expected[i]), "")
                    << dtype << " [" << s.rows << ", " << s.columns << ", " << s.n << "] over "
                    << axes.axis << ", result " << i << (codegen ? ", compiled" : "");
                EXPECT_EQ(difference(one[i], three[i]), "") << "by the number of threads";
              }
            }
        }
  set_thread_count(threads);
}

TEST(FusedReduction, PartialSumsMayExceedTheRangeOfFloats) {
  for (const bool codegen : {false, true}) {
    const std::string text =
        "    %3 = multiply(%0, %2) : float32[rows, columns, n]\n"
        "    %4 = mean(%3) {axis = [2]} : float32[rows, columns]\n"
        "    %5 = max(%3) {axis = [2]} : float32[rows, columns]\n    return %4 'm', %5 'l'\n";
    const ir::Module fused = passed(kCube, text, true), plain = passed(kCube, text, false);
    ASSERT_EQ(count(ir::print(fused), "= fused("), 1u) << ir::print(fused);
    const runtime::ExecutableOptions options{
        1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}};
    runtime::Executable a(fused.functions[0], options), b(plain.functions[0], options);
    for (const int64_t n : {5, 40, 64, 100, 300}) {
      Array x = Array::zeros(DType::kF32, {70, 3, n}), ones = Array::zeros(DType::kF32, {70, 3, n});
      for (int64_t i = 0; i < x.size(); ++i) {
        x.data<float>()[i] = i % n < n / 2 ? 3e38F : i % n == n - 1 ? 1.0F : -3e38F;
        ones.data<float>()[i] = 1;
      }
      const std::vector<Array> inputs = {x, Array::zeros(DType::kF32, {n}), ones};
      const std::vector<Array> one = kept(a.run(inputs)), expected = b.run(inputs);
      const double mean =
          3e38 * static_cast<double>(n / 2 - (n - 1 - n / 2)) / static_cast<double>(n);
      for (int64_t i = 0; i < one[0].size(); ++i)
        ASSERT_NEAR(one[0].number(i), mean, 1e-6 * std::abs(mean) + 1) << n;
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_EQ(difference(one[i], expected[i]), "") << n << (codegen ? ", compiled" : "");
    }
  }
}

TEST(FusedReduction, PartialProductsMayExceedTheRangeOfFloats) {
  const std::string text =
      "    %3 = multiply(%0, %2) : float32[rows, columns, n]\n"
      "    %4 = prod(%3) {axis = [2]} : float32[rows, columns]\n"
      "    %5 = prod(%3) {axis = [0]} : float32[columns, n]\n    return %4 'm', %5 'l'\n";
  for (const bool codegen : {false, true}) {
    const ir::Module fused = passed(kCube, text, true), plain = passed(kCube, text, false);
    ASSERT_EQ(count(ir::print(fused), "= fused("), 1u) << ir::print(fused);
    const runtime::ExecutableOptions options{
        1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}};
    runtime::Executable a(fused.functions[0], options), b(plain.functions[0], options);
    for (const int64_t n : {5, 17, 40, 64, 100, 300})
      // Some factors of a group, or their product, are beyond normal numbers; others are 0.
      for (const float large : {1.0F, 1e30F, 1e-30F, 1e-40F}) {
        Array x = Array::zeros(DType::kF32, {70, 3, n}), ones = Array::zeros(DType::kF32, x.shape);
        for (int64_t i = 0; i < x.size(); ++i) {
          const int64_t row = i / n, k = i % n;
          float value = 1 + static_cast<float>((i * 7919) % 100) * 1e-3F;
          if (row % 2 == 0 && k < 40 && k % 16 == 1) value *= large;
          if (row % 2 == 0 && k < 40 && k % 16 == 2) value *= std::min(1e38F, 1 / large);
          if (row % 11 == 3 && k == 4) value = -0.0F;
          x.data<float>()[i] = value;
          ones.data<float>()[i] = 1;
        }
        const std::vector<Array> inputs = {x, Array::zeros(DType::kF32, {n}), ones};
        const std::vector<Array> one = kept(a.run(inputs)), expected = b.run(inputs);
        for (int64_t row = 0; row < 210; ++row) {
          double product = 1;
          for (int64_t k = 0; k < n; ++k)
            product *= static_cast<double>(x.data<float>()[row * n + k]);
          const auto rounded = static_cast<float>(product);
          if (std::isinf(rounded))
            EXPECT_EQ(one[0].data<float>()[row], rounded) << n << " " << large;
          else if (std::abs(rounded) < 1e-37F)
            EXPECT_NEAR(one[0].data<float>()[row], rounded, 1e-43F) << n << " " << large;
          else
            EXPECT_NEAR(one[0].number(row), product, 3e-6 * std::abs(product)) << n << " " << large;
        }
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_EQ(difference(one[i], expected[i]), "") << n << (codegen ? ", compiled" : "");
      }
  }
}

TEST(FusedReduction, SumsOfSixteenBitsAreNoLessExact) {
  for (const char* dtype : {"float16", "bfloat16"})
    for (const bool codegen : {false, true}) {
      const std::string text = body("[1, 2]", "float32[rows]", "");
      const ir::Module fused = passed(typed(kCube, dtype), typed(text, dtype), true);
      const ir::Module wide = passed(kCube, text, false);
      ASSERT_EQ(count(ir::print(fused), "= fused("), 1u);
      const runtime::ExecutableOptions options{
          1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}};
      runtime::Executable a(fused.functions[0], options), b(wide.functions[0], options);
      const DType type = std::string(dtype) == "float16" ? DType::kF16 : DType::kBF16;
      std::vector<Array> inputs = {values({65, 3, 400}, type, 1), values({400}, type, 0.5),
                                   values({65, 3, 400}, type, 3)};
      const std::vector<Array> results = a.run(inputs);
      for (Array& input : inputs) input = input.cast(DType::kF32);
      const std::vector<Array> expected = b.run(inputs);
      // Only the end is rounded to 16 bits.
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(difference(results[i], expected[i].cast(type)), "") << dtype << " result " << i;
    }
}

TEST(FusedReduction, OfNoElements) {
  for (const bool codegen : {false, true})
    for (const auto& [shape, axis, result, sizes] :
         std::vector<std::tuple<Shape, const char*, const char*, Dims>>{
             {{0, 3, 4}, "[0]", "float32[columns, n]", {3, 4}},
             {{3, 4, 0}, "[2]", "float32[rows, columns]", {3, 4}},
             {{3, 0, 4}, "none", "float32[]", {}},
             {{0, 3, 4}, "[2]", "float32[rows, columns]", {0, 3}}}) {
      const std::string to = str(" {axis = ", axis, "} : ", result, "\n");
      const ir::Module m =
          passed(kCube,
                 "    %3 = multiply(%0, %2) : float32[rows, columns, n]\n    %4 = sum(%3)" + to +
                     "    %5 = mean(%3)" + to + "    return %4 's', %5 'm', %3 'y'\n",
                 true);
      ASSERT_EQ(count(ir::print(m), "= fused("), 1u);
      runtime::Executable run(
          m.functions[0],
          runtime::ExecutableOptions{
              1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}});
      const Dims full = {shape.rows, shape.columns, shape.n};
      const auto results = run.run({values(full, DType::kF32, 1), values({shape.n}, DType::kF32, 1),
                                    values(full, DType::kF32, 1)});
      EXPECT_EQ(results[0].shape, sizes);
      for (int64_t i = 0; i < results[0].size(); ++i) {
        EXPECT_EQ(results[0].number(i), 0);
        EXPECT_TRUE(std::isnan(results[1].number(i)));
      }
    }
}

TEST(FusedReduction, OperandsOfAnyForm) {
  // Transposed, a row, a column, a number; the sum must not reuse the memory of the row that has
  // its shape.
  const std::string inputs =
      "      %0 : float32[n, rows] 'x',\n"
      "      %1 : float32[1, n] 'b',\n"
      "      %2 : float32[rows, 1] 'g',\n"
      "      %10 : float32[] 'c'";
  const std::string text =
      "    %11 = transpose(%0) {perm = [1, 0]} : float32[rows, n]\n"
      "    %12 = exp(%1) : float32[1, n]\n"
      "    %3 = multiply(%11, %12) : float32[rows, n]\n"
      "    %4 = add(%3, %2) : float32[rows, n]\n"
      "    %5 = maximum(%4, %10) : float32[rows, n]\n"
      "    %6 = sum(%5) {axis = [0], keepdim = true} : float32[1, n]\n"
      "    return %6 's'\n";
  const ir::Module fused = passed(inputs, text, true), plain = passed(inputs, text, false);
  ASSERT_EQ(count(ir::print(fused), "sum("), 1u);
  for (const bool codegen : {false, true})
    for (const int64_t rows : {1, 64, 700})
      for (const int64_t n : {1, 20, 129, 3000}) {
        const runtime::ExecutableOptions options{
            1, {.check_memory = true, .profile = nullptr, .prepare = {.codegen = codegen}}};
        runtime::Executable a(fused.functions[0], options), b(plain.functions[0], options);
        const std::vector<Array> in = {
            values({n, rows}, DType::kF32, 1), values({1, n}, DType::kF32, 2),
            values({rows, 1}, DType::kF32, 3), values({}, DType::kF32, -0.3)};
        EXPECT_EQ(difference(a.run(in)[0], b.run(in)[0]), "") << rows << " rows of " << n;
      }
}

TEST(FusedReduction, IsFoldedWhereThatPays) {
  // The group in a profile, by sizes: rows, columns, and runs that are too short to be
  // computed one by one.
  struct Case {
    const char *axis, *result;
    Shape shape;
    bool pays;
  };
  for (const Case& c : {Case{"[2]", "float32[rows, columns]", {64, 3, 100}, true},
                        Case{"[0, 1]", "float32[n]", {64, 3, 100}, true},
                        Case{"[0, 2]", "float32[columns]", {64, 3, 784}, true},
                        Case{"[0, 2]", "float32[columns]", {64, 3, 100}, false}}) {
    const ir::Module m = passed(kCube, body(c.axis, c.result, ""), true);
    const auto profile = std::make_shared<runtime::Profile>();
    runtime::Executable run(m.functions[0], runtime::ExecutableOptions{1, {.profile = profile}});
    const Dims full = {c.shape.rows, c.shape.columns, c.shape.n};
    run.run({values(full, DType::kF32, 1), values({c.shape.n}, DType::kF32, 1),
             values(full, DType::kF32, 1)});
    const auto& instructions = profile->instructions;
    const bool folded = instructions[0].operation == "fused+sum+max+min+mean";
    EXPECT_EQ(instructions.size(), folded ? 1u : 5u);
    // Without machine code columns are read again.
    if (c.pays && instructions[0].implementation.starts_with("codegen")) {
      EXPECT_TRUE(folded) << instructions[0].operation;
    }
    if (!c.pays) {
      EXPECT_EQ(instructions[0].operation, "fused");
    }
  }
}

TEST(FusedReduction, ProfilesNameIt) {
  const ir::Module m = passed(kMatrices,
                              "    %3 = multiply(%0, %2) : float32[rows, n]\n"
                              "    %4 = sum(%3) {axis = [1]} : float32[rows]\n"
                              "    %5 = max(%3) {axis = [1]} : float32[rows]\n"
                              "    return %4 'y', %5 'z'\n",
                              true);
  const auto profile = std::make_shared<runtime::Profile>();
  runtime::Executable run(m.functions[0], runtime::ExecutableOptions{1, {.profile = profile}});
  run.run({values({3, 50}, DType::kF32, 1), values({50}, DType::kF32, 1),
           values({3, 50}, DType::kF32, 1)});
  ASSERT_EQ(profile->instructions.size(), 1u);
  EXPECT_EQ(profile->instructions[0].operation, "fused+sum+max");
  EXPECT_EQ(profile->instructions[0].flops, 3 * 150);
}

}  // namespace
}  // namespace paddle
