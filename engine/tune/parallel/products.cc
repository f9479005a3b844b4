#include "tune/parallel/products.h"

#include <algorithm>

namespace paddle::tune {
namespace {

// Fitted to the published runs of tests/tune/published_runs.csv (docs/performance/planner.md).
constexpr double kHalfWidth = 124.0;   ///< inner and outer sizes that reach half of the rate
constexpr double kHalfTokens = 450.0;  ///< and numbers of tokens
constexpr double kGrouped = 0.2068;    ///< rate of grouped products of experts

}  // namespace

std::vector<Product> products_of_layer(const Transformer& m, const Strategy& s, double tokens) {
  const double hidden = real(m.hidden), tensor = real(s.tensor);
  const double queries = real(m.heads * m.head_size) / tensor;
  const double all_heads = real((m.heads + 2 * m.kv_heads) * m.head_size) / tensor;
  const double ffn = real(m.ffn) / tensor;
  std::vector<Product> out = {{tokens, hidden, all_heads}, {tokens, queries, hidden}};
  Product up{tokens, hidden, (m.gated ? 2 : 1) * ffn}, down{tokens, ffn, hidden};
  for (Product* each : {&up, &down}) {
    if (m.experts > 0) {
      // An expert gets its share of the tokens of all ranks that the experts are spread over.
      const double sent = tokens * real(m.experts_per_token);
      each->tokens = sent * real(s.expert) / real(m.experts);
      each->count = sent / each->tokens;
      each->grouped = true;
    }
    out.push_back(*each);
  }
  return out;
}

double shape_efficiency(const Product& p) {
  const auto reached = [](double size, double half) { return size / (size + half); };
  return reached(p.inner, kHalfWidth) * reached(p.outer, kHalfWidth) *
         reached(p.tokens, kHalfTokens) * (p.grouped ? kGrouped : 1);
}

}  // namespace paddle::tune
