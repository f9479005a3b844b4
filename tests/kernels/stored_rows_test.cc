// Products with stored rows of packed weights have the bits of those with panels.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/packed/tiles.h"
#include "ops/generation/packed_format.h"

namespace paddle::cpu {
namespace {

std::vector<std::byte> random_rows(const PackedFormat& format, int64_t rows, int64_t features,
                                   std::mt19937& random) {
  std::vector<std::byte> out(static_cast<size_t>(rows * features / format.values * format.bytes));
  for (std::byte& each : out) each = static_cast<std::byte>(random());
  std::uniform_real_distribution<float> scale(-0.02F, 0.02F);
  for (size_t b = 0; b < out.size(); b += static_cast<size_t>(format.bytes)) {
    const float16 value(scale(random));
    std::memcpy(&out[b], &value, sizeof value);
  }
  return out;
}

/// Quantized rows with their memory.
struct Activations {
  std::vector<int8_t> values, low;
  std::vector<int16_t> words;
  std::vector<float> scales, totals;
  std::vector<int32_t> corrections;
  QuantizedRows view{};

  Activations(const PackedLoops& loops, const UnpackedFormat& format, int64_t rows,
              int64_t features, bool wide, std::mt19937& random) {
    const auto size = static_cast<size_t>(rows * features);
    const size_t units = size / kUnit;
    values.resize(size);
    low.resize(size);
    words.resize(size);
    scales.resize(units);
    totals.resize(units);
    corrections.resize(2 * units);
    std::vector<float> x(size);
    std::normal_distribution<float> normal;
    for (float& each : x) each = normal(random);
    loops.quantize(format, x.data(), static_cast<int64_t>(units), values.data(),
                   wide ? low.data() : nullptr, scales.data(), corrections.data(), totals.data());
    for (size_t i = 0; i < size; ++i)
      words[i] = static_cast<int16_t>(wide ? values[i] * 128 + low[i] : values[i]);
    view = {values.data(), wide ? low.data() : nullptr, words.data(),
            scales.data(), corrections.data(),          totals.data()};
  }
};

TEST(StoredRows, GiveTheBitsOfPanels) {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this processor has no AVX2";
  const PackedLoops& loops = packed_loops_avx2();
  std::mt19937 random(1);
  for (const char* name : {"q8_0"})
    for (const int64_t features : {32, 160, 2048})
      for (const int64_t columns : {1, 7, 16, 21, 48})
        for (const int64_t rows : {1, 2, 3, 9})
          for (const bool wide : {false, true}) {
            const UnpackedFormat& format = *find_unpacked_format(name);
            ASSERT_TRUE(loops.reads_rows(format));
            const PackedFormat& blocks = *find_packed_format(name);
            const int64_t row_bytes = features / blocks.values * blocks.bytes;
            const std::vector<std::byte> weight = random_rows(blocks, columns, features, random);
            const PanelLayout layout = panel_layout(name, DType::kU8, features, columns);
            std::vector<std::byte> panels(layout.bytes()), scratch(widened_bytes(layout));
            pack_panels(layout, DType::kU8, weight.data(), row_bytes, panels.data());
            const Activations x(loops, format, rows, features, wide, random);
            const std::vector<float> bias(static_cast<size_t>(columns), 0.25F);
            TileProduct product{};
            product.layout = &layout;
            product.panels = panels.data();
            product.groups = layout.groups();
            product.quantized = x.view;
            product.rows = rows;
            product.bias = bias.data();
            product.pitch = product.columns = columns;
            std::vector<float> wanted(static_cast<size_t>(rows * columns)), found = wanted;
            product.out = wanted.data();
            loops.multiply(product);
            product.panels = weight.data();
            product.row_bytes = row_bytes;
            product.out = found.data();
            const auto same = [&] {
              return std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)) == 0;
            };
            loops.multiply_rows(product);
            EXPECT_TRUE(same()) << name << " " << features << " " << columns << " " << rows;
            std::fill(found.begin(), found.end(), 0.0F);
            loops.multiply_words(product, scratch.data());
            EXPECT_TRUE(same()) << name << " " << features << " " << columns << " " << rows;
          }
#else
  GTEST_SKIP() << "only the loops of AVX2 read stored rows";
#endif
}

}  // namespace
}  // namespace paddle::cpu
