#include "tune/parallel/transformer.h"

#include "config/overrides.h"
#include "config/schema.h"

namespace paddle::tune {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

Schema transformer_schema() {
  Schema shape;
  const auto count = [&](const char* key, const char* doc) {
    shape.add(key, Spec::integer().at_least(1).at_most(1e9).required().doc(doc));
  };
  const auto optional = [&](const char* key, const char* doc) {
    shape.add(key, Spec::integer().at_least(0).at_most(1e9).fallback("0").doc(doc));
  };
  count("layers", "transformer blocks");
  count("hidden", "width of the residual stream");
  count("heads", "attention heads");
  optional("kv_heads", "heads of keys and values; 0: as heads");
  optional("head_size", "0: hidden / heads");
  optional("ffn", "width of the feed-forward block or of an expert; 0: 4 * hidden");
  shape.add("gated", Spec::boolean().fallback("false").doc("three products in a feed-forward"));
  count("vocab", "tokens of the vocabulary");
  shape.add("tied", Spec::boolean().fallback("true").doc(
                        "the output layer shares the weight of the embedding"));
  count("sequence", "tokens of a sequence");
  optional("experts", "experts of a layer; 0: dense");
  shape.add("experts_per_token", Spec::integer().at_least(1).fallback("1").doc("that see a token"));
  Schema s;
  s.add("name", Spec::text().fallback("transformer").doc("for reports"));
  s.add("transformer", Spec::map(shape).required().doc("the shape"));
  s.add("batch", Spec::integer().at_least(1).at_most(1e9).required().doc("sequences of a step"));
  s.add("precision", Spec::word({"bfloat16", "float16", "float8", "float32"})
                         .fallback("bfloat16")
                         .doc("of matrix products"));
  return s;
}

}  // namespace

double Transformer::attention_parameters() const {
  const auto h = static_cast<double>(hidden), size = static_cast<double>(head_size);
  return h * size * static_cast<double>(heads + 2 * kv_heads) +
         static_cast<double>(heads) * size * h;
}

double Transformer::feed_forward_parameters() const {
  return (gated ? 3.0 : 2.0) * static_cast<double>(hidden) * static_cast<double>(ffn);
}

double Transformer::dense_parameters() const {
  const auto h = static_cast<double>(hidden);
  const double block = attention_parameters() +
                       (experts > 0 ? h * static_cast<double>(experts) : feed_forward_parameters());
  return static_cast<double>(layers) * block + (tied ? 1 : 2) * h * static_cast<double>(vocabulary);
}

double Transformer::expert_parameters() const {
  return static_cast<double>(layers) * static_cast<double>(experts) * feed_forward_parameters();
}

Transformer read_transformer(const std::string& path) {
  config::Diagnostics diagnostics;
  config::Node document = config::read_extended(path, diagnostics);
  if (!document.find("transformer"))
    throw Error(ErrorCode::kConfig,
                "planning needs the shape of a transformer: expected 'transformer: {layers: …, "
                "hidden: …, heads: …, vocab: …, sequence: …}' and 'batch: …'",
                document.location());
  static const Schema schema = transformer_schema();
  schema.resolve(document, "", diagnostics);
  diagnostics.raise();
  const Section s(document), shape = s.section("transformer");
  Transformer t;
  t.name = s.text("name");
  t.layers = shape.integer("layers");
  t.hidden = shape.integer("hidden");
  t.heads = shape.integer("heads");
  t.kv_heads = shape.integer("kv_heads") ? shape.integer("kv_heads") : t.heads;
  t.ffn = shape.integer("ffn") ? shape.integer("ffn") : 4 * t.hidden;
  t.gated = shape.boolean("gated");
  t.vocabulary = shape.integer("vocab");
  t.tied = shape.boolean("tied");
  t.sequence = shape.integer("sequence");
  t.experts = shape.integer("experts");
  t.experts_per_token = shape.integer("experts_per_token");
  t.batch = s.integer("batch");
  t.precision = s.text("precision");
  t.head_size = shape.integer("head_size");
  if (t.head_size == 0 && t.hidden % t.heads != 0)
    throw Error(ErrorCode::kConfig,
                str("hidden ", t.hidden, " does not divide into ", t.heads,
                    " heads; give transformer.head_size"),
                shape.location("heads"));
  if (t.head_size == 0) t.head_size = t.hidden / t.heads;
  if (t.heads % t.kv_heads != 0)
    throw Error(ErrorCode::kConfig,
                str("kv_heads is ", t.kv_heads, ", which does not divide the ", t.heads, " heads"),
                shape.location("kv_heads"));
  if (t.experts > 0 && t.experts_per_token > t.experts)
    throw Error(
        ErrorCode::kConfig,
        str("experts_per_token is ", t.experts_per_token, ", there are ", t.experts, " experts"),
        shape.location("experts_per_token"));
  return t;
}

}  // namespace paddle::tune
